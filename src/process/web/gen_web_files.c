/* SPDX-License-Identifier: PostgreSQL
 * gen_web_files.c: writes files as C arrays, and a table of them by name. A tool of the build. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#define LINE_BYTES 20

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static int put_file(const char *path, int number)
{
    FILE *file = fopen(path, "rb");
    int n = 0;
    int c;

    if (file == NULL) {
        perror(path);
        return -1;
    }
    printf("static const unsigned char file_%d[] = {", number);
    while ((c = getc(file)) != EOF)
        printf("%s%d,", n++ % LINE_BYTES == 0 ? "\n" : "", c);
    printf("\n};\n");
    fclose(file);
    return n == 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    int i;

    printf("/* Made by gen_web_files from src/process/web/page. */\n#include \"config.h\"\n"
           "#include <stddef.h>\n#include \"process/web/web_page.h\"\n");
    for (i = 1; i < argc; i++)
        if (put_file(argv[i], i) != 0)
            return 1;
    printf("const struct web_file web_files[] = {\n");
    for (i = 1; i < argc; i++)
        printf("{\"%s\", file_%d, sizeof file_%d},\n", base_name(argv[i]), i, i);
    printf("{NULL, NULL, 0}};\n");
    return ferror(stdout) != 0;
}
