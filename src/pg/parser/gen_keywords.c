/* SPDX-License-Identifier: PostgreSQL
 * gen_keywords.c: build-time tool: turns keywords.def into a perfect hash or into grammar rules.
 * Runs only while building. `gen_keywords hash` prints kwhash.h, `gen_keywords tokens` and
 * `gen_keywords rules` print parts of the grammar. Two-level hashing: words are spread over
 * buckets, and each bucket gets the displacement that puts its words into free slots. */
#include "config.h"

#include "kwfold.h"

#include <stdio.h>
#include <string.h>

enum { UNRESERVED, COLNAME, TYPEFUNC, RESERVED };
enum { BARE, AS };
struct word {
    const char *text;
    const char *token;
    int category;
    int label;
    int since;
};
#define KW(w, t, c, l, s) {#w, #t, c, l, s},
static const struct word words[] = {
#include "keywords.def"
};
#define N_WORDS   (int)(sizeof(words) / sizeof(words[0]))
#define MAX_PROBE 60000

static const char *const category_name[] = {
    "kw_unreserved", "kw_colname", "kw_typefunc", "kw_reserved"};

static void fold_word(const char *text, struct kw_key *key)
{
    char padded[40] = {0};

    memcpy(padded, text, strlen(text));
    kw_fold(padded, (unsigned)strlen(text), key);
}

/* Tries displacement `d` for all words of `bucket`; on success puts them into `slot`. */
static int place_bucket(const struct kw_key *keys, unsigned bucket, unsigned d, int *slot)
{
    int placed[N_WORDS];
    int n = 0;

    for (int i = 0; i < N_WORDS; i++) {
        if (kw_bucket(kw_hash(&keys[i])) != bucket)
            continue;
        unsigned s = kw_slot(kw_hash(&keys[i]), d);
        if (slot[s] >= 0) {
            while (n > 0)
                slot[placed[--n]] = -1;
            return 0;
        }
        slot[s] = i;
        placed[n++] = (int)s;
    }
    return 1;
}

static int print_hash(void)
{
    static struct kw_key keys[N_WORDS];
    static int slot[KW_SLOTS];
    static unsigned disp[KW_BUCKETS];
    static int size[KW_BUCKETS];

    for (int i = 0; i < KW_SLOTS; i++)
        slot[i] = -1;
    for (int i = 0; i < N_WORDS; i++) {
        fold_word(words[i].text, &keys[i]);
        size[kw_bucket(kw_hash(&keys[i]))]++;
    }
    for (int want = N_WORDS; want > 0; want--) {
        for (unsigned b = 0; b < KW_BUCKETS; b++) {
            if (size[b] != want)
                continue;
            while (disp[b] < MAX_PROBE && !place_bucket(keys, b, disp[b], slot))
                disp[b]++;
            if (disp[b] == MAX_PROBE) {
                fputs("gen_keywords: no perfect hash found\n", stderr);
                return 1;
            }
        }
    }
    puts("/* Made by gen_keywords from keywords.def. */");
    puts("static const unsigned short kw_disp[KW_BUCKETS] = {");
    for (int b = 0; b < KW_BUCKETS; b++)
        printf("%u,%s", disp[b], b % 16 == 15 ? "\n" : " ");
    puts("};\nstatic const struct kw_entry kw_table[KW_SLOTS] = {");
    for (int s = 0; s < KW_SLOTS; s++) {
        if (slot[s] < 0)
            continue;
        const struct kw_key *k = &keys[slot[s]];
        printf("[%d] = {{{0x%llxULL, 0x%llxULL, 0x%llxULL}}, %s, %d},\n", s,
            (unsigned long long)k->w[0], (unsigned long long)k->w[1], (unsigned long long)k->w[2],
            words[slot[s]].token, words[slot[s]].since > 15);
    }
    puts("};");
    return 0;
}

static void print_rule(const char *name, int category)
{
    const char *sep = ": ";

    printf("%s\n", name);
    for (int i = 0; i < N_WORDS; i++) {
        int is_in = category < 0 ? words[i].label == BARE : words[i].category == category;
        if (!is_in)
            continue;
        printf("    %s%s\n", sep, words[i].token);
        sep = "| ";
    }
    puts("    ;\n");
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";

    if (strcmp(what, "hash") == 0)
        return print_hash();
    if (strcmp(what, "tokens") == 0) {
        for (int i = 0; i < N_WORDS; i++)
            printf("%%token %s\n", words[i].token);
        return 0;
    }
    if (strcmp(what, "rules") == 0) {
        for (int c = UNRESERVED; c <= RESERVED; c++)
            print_rule(category_name[c], c);
        print_rule("kw_bare", -1);
        return 0;
    }
    fputs("usage: gen_keywords hash | tokens | rules\n", stderr);
    return 2;
}
