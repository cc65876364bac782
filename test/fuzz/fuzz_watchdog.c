/* SPDX-License-Identifier: PostgreSQL
 * fuzz_watchdog.c: fuzz target over what the log of the watchdog's cluster holds, what its
 * snapshots are and what commands say as JSON. The first byte says which. Invariants checked:
 * nothing is read outside the input, an event of any numbers changes nothing beyond the state, and
 * what is read is the same when it was written and is read again. */
#include "config.h"

#include "cluster/wd_json.h"
#include "cluster/wd_state.h"

#include "fuzz_bytes.h"

static struct wd_state state;
static struct wd_state again;

static void check_state(void)
{
    struct buf out = {0};

    wd_state_put(&state, &out);
    require(wd_state_get(buf_slice(&out), &again), "a state that was written cannot be read");
    require(wd_state_equal(&state, &again), "a state is another one when it is read again");
    buf_free(&out);
    (void)wd_state_is_owed(&state);
}

static void fuzz_events(struct slice in)
{
    struct wd_event e;
    struct wd_event same;
    struct buf out = {0};
    size_t n;

    wd_state_init(&state);
    while (in.n > 0) {
        n = (unsigned char)in.p[0];
        in = slice_of(in.p + 1, in.n - 1);
        n = n < in.n ? n : in.n;
        if (wd_event_get(slice_of(in.p, n), &e)) {
            buf_clear(&out);
            wd_event_put(&e, &out);
            require(
                wd_event_get(buf_slice(&out), &same), "an event that was written cannot be read");
            require(
                memcmp(&e, &same, sizeof e) == 0, "an event is another one when it is read again");
            (void)wd_state_apply(&state, &e);
        }
        in = slice_of(in.p + n, in.n - n);
    }
    buf_free(&out);
    check_state();
}

static void fuzz_json(struct slice in)
{
    static const char *const keys[] = {"a", "IPCAuthKey", "NodeList"};
    struct slice value;
    struct slice element;
    struct slice rest;
    char text[8];
    size_t before;
    size_t i;
    int number;

    for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        (void)wd_json_text(in, keys[i], text, sizeof text);
        (void)wd_json_int(in, keys[i], &number);
        if (!wd_json_find(in, keys[i], &value))
            continue;
        require_inside(in, value);
        for (rest = value, before = rest.n + 1; rest.n < before && wd_json_next(&rest, &element);) {
            before = rest.n;
            require_inside(in, element);
            (void)wd_json_int(element, "a", &number);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size: the sanitizer sees a read one byte too far. */
    char *copy = malloc(size == 0 ? 1 : size);
    struct slice in = slice_of(copy, size);

    if (copy == NULL || size == 0) {
        free(copy);
        return 0;
    }
    memcpy(copy, data, size);
    in = slice_of(in.p + 1, in.n - 1);
    switch (data[0] % 3) {
    case 0:
        fuzz_events(in);
        break;
    case 1:
        if (wd_state_get(in, &state))
            check_state();
        break;
    default:
        fuzz_json(in);
        break;
    }
    free(copy);
    return 0;
}

#ifndef FUZZ_LIBFUZZER
static const struct slice seeds[] = {SEED("\0\x39\2\1\0\1\0\2\0\0\3\0\0\0\5\0\0\0\1\0\0\0\0\0\0\0\1"
                                          "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1who\0"
                                          "because\0"),
    SEED("\1\1\0\0\0\0\0\0\0\1\0\0\0\1\0\0"),
    SEED("\2{\"a\":12,\"IPCAuthKey\":\"x\\\"\\u00fc\",\"NodeList\":[1,{\"a\":2},\"z\"]}")};

FUZZ_MAIN(seeds)
#endif
