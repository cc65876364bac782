dnl PGP_WITH_PKG(option, NAME, pkg-config spec, what for)
dnl --with-OPTION=yes|no|auto; sets have_OPTION, conditional WITH_NAME, NAME_CFLAGS, NAME_LIBS.
AC_DEFUN([PGP_WITH_PKG], [
AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1], [$4])], [], [with_$1=auto])
have_$1=no
AS_IF([test "x$with_$1" != xno],
  [PKG_CHECK_MODULES([$2], [$3], [have_$1=yes],
    [AS_IF([test "x$with_$1" = xyes], [AC_MSG_ERROR([--with-$1: $3 not found])])])])
AM_CONDITIONAL([WITH_$2], [test "x$have_$1" = xyes])
])

dnl PGP_WITH_LIB(option, NAME, header, library, function, what for)
AC_DEFUN([PGP_WITH_LIB], [
AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1], [$6])], [], [with_$1=auto])
have_$1=no
AS_IF([test "x$with_$1" != xno],
  [AC_CHECK_HEADER([$3],
    [pgp_save_LIBS=$LIBS
     AC_CHECK_LIB([$4], [$5], [have_$1=yes; $2_LIBS="-l$4"])
     LIBS=$pgp_save_LIBS])
   AS_IF([test "x$with_$1$have_$1" = xyesno], [AC_MSG_ERROR([--with-$1: lib$4 not found])])])
AC_SUBST([$2_LIBS])
AM_CONDITIONAL([WITH_$2], [test "x$have_$1" = xyes])
])
