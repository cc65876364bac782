/* SPDX-License-Identifier: PostgreSQL
 * cache_value.c: values of columns as keys.
 * Runs in: workers and the invalidator. Pure. What cannot be told for sure has no key: that costs a
 * result its life now and then, a wrong key would cost the truth. */
#include "config.h"

#include "cache/cache_value.h"

#include <string.h>

#include "base/hash.h"

#define UUID_BYTES 16
/* Days from 0000-03-01 to 2000-01-01, which is day 0 of the server's dates. */
#define DAYS_TO_2000 730425

/* Seeds: values of different kinds never meet, for a column has one type; this is for the eye. */
enum value_kind { VALUE_NUMBER = 1, VALUE_TEXT, VALUE_FOREIGN_TEXT, VALUE_UUID };

static bool is_int(uint32_t type)
{
    return type == CACHE_TYPE_INT2 || type == CACHE_TYPE_INT4 || type == CACHE_TYPE_INT8;
}

static bool is_text(uint32_t type)
{
    return type == CACHE_TYPE_TEXT || type == CACHE_TYPE_VARCHAR;
}

bool cache_value_has_key(uint32_t type)
{
    return is_int(type) || is_text(type) || type == CACHE_TYPE_BOOL || type == CACHE_TYPE_DATE ||
           type == CACHE_TYPE_UUID;
}

static int number_key(int64_t n, uint64_t *key)
{
    *key = hash_pair((uint64_t)n, VALUE_NUMBER);
    return 0;
}

static bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

static struct slice trimmed(struct slice s)
{
    while (s.n > 0 && is_blank(s.p[0]))
        s = slice_of(s.p + 1, s.n - 1);
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

static int int_from_text(struct slice s, int64_t *out)
{
    uint64_t n = 0;
    bool is_negative = false;
    size_t i;

    s = trimmed(s);
    if (s.n > 0 && (s.p[0] == '-' || s.p[0] == '+')) {
        is_negative = s.p[0] == '-';
        s = slice_of(s.p + 1, s.n - 1);
    }
    if (s.n == 0)
        return -1;
    for (i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]) || n > (UINT64_C(1) << 63) / 10)
            return -1;
        n = n * 10 + (uint64_t)(s.p[i] - '0');
    }
    if (n > (UINT64_C(1) << 63) || (n == UINT64_C(1) << 63 && !is_negative))
        return -1;
    *out = (int64_t)(is_negative ? 0 - n : n);
    return 0;
}

/* Big-endian, signed. */
static int64_t int_from_binary(struct slice s)
{
    uint64_t n = (unsigned char)s.p[0] >= 0x80 ? UINT64_MAX : 0;
    size_t i;

    for (i = 0; i < s.n; i++)
        n = n << 8 | (unsigned char)s.p[i];
    return (int64_t)n;
}

static size_t int_bytes(uint32_t type)
{
    return type == CACHE_TYPE_INT2 ? 2 : type == CACHE_TYPE_INT4 ? 4 : 8;
}

static int int_key(uint32_t from, bool is_binary, struct slice value, uint64_t *key)
{
    int64_t n;

    if (!is_int(from))
        return -1;
    if (is_binary && value.n == int_bytes(from))
        return number_key(int_from_binary(value), key);
    if (is_binary || int_from_text(value, &n) != 0)
        return -1;
    return number_key(n, key);
}

static int bool_key(bool is_binary, struct slice value, uint64_t *key)
{
    if (is_binary)
        return value.n == 1 ? number_key(value.p[0] != 0, key) : -1;
    value = trimmed(value);
    if (slice_ieq_str(value, "t") || slice_ieq_str(value, "true"))
        return number_key(1, key);
    if (slice_ieq_str(value, "f") || slice_ieq_str(value, "false"))
        return number_key(0, key);
    return -1;
}

static int two_digits(const char *p)
{
    return (p[0] - '0') * 10 + (p[1] - '0');
}

/* Year first with four digits means the same under every DateStyle. */
static int date_key(bool is_binary, struct slice value, uint64_t *key)
{
    static const char mould[] = "dddd-dd-dd";
    int64_t year;
    int month;
    int day;
    size_t i;

    if (is_binary)
        return value.n == 4 ? number_key(int_from_binary(value), key) : -1;
    value = trimmed(value);
    if (value.n != sizeof mould - 1)
        return -1;
    for (i = 0; i < value.n; i++)
        if (mould[i] == 'd' ? !is_digit(value.p[i]) : value.p[i] != mould[i])
            return -1;
    year = two_digits(value.p) * 100 + two_digits(value.p + 2);
    month = two_digits(value.p + 5);
    day = two_digits(value.p + 8);
    if (year == 0 || month < 1 || month > 12 || day < 1 || day > 31)
        return -1;
    /* Years from March on: the leap day is the last one. */
    if (month < 3)
        year--;
    month = (month + 9) % 12;
    return number_key(year * 365 + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 +
                          day - 1 - DAYS_TO_2000,
        key);
}

static int hex_digit(char ch)
{
    if (is_digit(ch))
        return ch - '0';
    if (ch >= 'a' && ch <= 'f')
        return ch - 'a' + 10;
    if (ch >= 'A' && ch <= 'F')
        return ch - 'A' + 10;
    return -1;
}

static int uuid_key(bool is_binary, struct slice value, uint64_t *key)
{
    unsigned char byte[UUID_BYTES] = {0};
    size_t ndigits = 0;
    size_t i;

    if (is_binary) {
        if (value.n != UUID_BYTES)
            return -1;
        memcpy(byte, value.p, UUID_BYTES);
        *key = hash_bytes(byte, UUID_BYTES, VALUE_UUID);
        return 0;
    }
    value = trimmed(value);
    if (value.n >= 2 && value.p[0] == '{' && value.p[value.n - 1] == '}')
        value = slice_of(value.p + 1, value.n - 2);
    for (i = 0; i < value.n; i++) {
        int digit = hex_digit(value.p[i]);

        if (value.p[i] == '-')
            continue;
        if (digit < 0 || ndigits == (size_t)UUID_BYTES * 2)
            return -1;
        byte[ndigits / 2] = (unsigned char)(byte[ndigits / 2] << 4 | digit);
        ndigits++;
    }
    if (ndigits != (size_t)UUID_BYTES * 2)
        return -1;
    *key = hash_bytes(byte, UUID_BYTES, VALUE_UUID);
    return 0;
}

static int text_key(uint32_t from, struct slice value, uint64_t *key)
{
    size_t i;

    if (!is_text(from))
        return -1;
    for (i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] >= 0x80) {
            *key = hash_pair(0, VALUE_FOREIGN_TEXT);
            return 0;
        }
    *key = hash_bytes(value.p, value.n, VALUE_TEXT);
    return 0;
}

int cache_value_key(uint32_t type, uint32_t from, bool is_binary, struct slice value, uint64_t *key)
{
    if (is_text(type))
        return text_key(from, value, key);
    if (value.n == 0)
        return -1;
    if (is_int(type))
        return int_key(from, is_binary, value, key);
    if (from != type)
        return -1;
    if (type == CACHE_TYPE_BOOL)
        return bool_key(is_binary, value, key);
    if (type == CACHE_TYPE_DATE)
        return date_key(is_binary, value, key);
    if (type == CACHE_TYPE_UUID)
        return uuid_key(is_binary, value, key);
    return -1;
}
