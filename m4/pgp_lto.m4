dnl PGP_LTO: link-time optimisation of the pgpool program; sets LTO_CFLAGS (all objects), LTO_LDFLAGS (that program)
dnl and NO_LTO_LDFLAGS (all others).
dnl Objects hold both forms: tests and tools are linked from the plain one, which takes a fraction of the time.
dnl Not with sanitizers and coverage, which look for their own line numbers, nor where the user asked for -O0.
AC_DEFUN([PGP_LTO], [
AC_ARG_ENABLE([lto], [AS_HELP_STRING([--disable-lto], [no link-time optimisation (default: where the compiler can)])],
  [], [enable_lto=auto])
AS_IF([test "x$enable_lto" = xauto -a "x$SAN_FLAGS" != x], [enable_lto=no])
AS_CASE([$CFLAGS], [*-O0*], [AS_IF([test "x$enable_lto" = xauto], [enable_lto=no])])
LTO_CFLAGS=
LTO_LDFLAGS=
NO_LTO_LDFLAGS=
AS_IF([test "x$enable_lto" != xno],
  [AC_MSG_CHECKING([whether $CC can optimise when it links])
   pgp_save_CFLAGS=$CFLAGS
   pgp_save_LDFLAGS=$LDFLAGS
   CFLAGS="$CFLAGS -Werror -flto=auto -ffat-lto-objects"
   LDFLAGS="$LDFLAGS -flto=auto"
   AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [have_lto=yes], [have_lto=no])
   CFLAGS=$pgp_save_CFLAGS
   LDFLAGS=$pgp_save_LDFLAGS
   AC_MSG_RESULT([$have_lto])
   AS_IF([test "x$enable_lto$have_lto" = xyesno], [AC_MSG_ERROR([--enable-lto: the compiler cannot])])
   AS_IF([test "x$have_lto" = xyes], [LTO_CFLAGS="-flto=auto -ffat-lto-objects"; LTO_LDFLAGS=-flto=auto; NO_LTO_LDFLAGS=-fno-lto])])
AC_SUBST([LTO_CFLAGS])
AC_SUBST([LTO_LDFLAGS])
AC_SUBST([NO_LTO_LDFLAGS])
])
