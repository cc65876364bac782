/* SPDX-License-Identifier: PostgreSQL
 * test_crypto.c: digests, base64 and ciphers against published vectors and against texts that the
 * pg_enc of pgpool-II 4.3 wrote. */
#include "config.h"

#include "crypto/crypto.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/cipher.h"
#include "crypto/secret.h"

#include "run_suite.h"

static void hex_of(const uint8_t *p, size_t n, char *out)
{
    size_t i;

    for (i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", p[i]);
}

static void assert_hex(const uint8_t *p, size_t n, const char *want)
{
    char text[129];

    hex_of(p, n, text);
    ck_assert_str_eq(text, want);
}

START_TEST(test_sha256_of_abc)
{
    uint8_t out[32];

    ck_assert_int_eq(crypto_sha256(slice_of_str("abc"), out, NULL), 0);
    assert_hex(out, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_int_eq(crypto_sha256(slice_of(NULL, 0), out, NULL), 0);
    assert_hex(out, 32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

/* RFC 4231, cases 2 and 6 (a key longer than a block). */
START_TEST(test_hmac_vectors)
{
    char key[131];
    uint8_t out[32];

    ck_assert_int_eq(crypto_hmac_sha256(slice_of_str("Jefe"),
                         slice_of_str("what do ya want for nothing?"), out, NULL),
        0);
    assert_hex(out, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    ck_assert_int_eq(
        crypto_hmac_sha256(slice_of(key, sizeof key),
            slice_of_str("Test Using Larger Than Block-Size Key - Hash Key First"), out, NULL),
        0);
    assert_hex(out, 32, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    ck_assert_int_eq(crypto_hmac_sha256(slice_of(NULL, 0), slice_of(NULL, 0), out, NULL), 0);
    assert_hex(out, 32, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}
END_TEST

START_TEST(test_pbkdf2_vectors)
{
    uint8_t out[32];

    ck_assert_int_eq(
        crypto_pbkdf2(slice_of_str("password"), slice_of_str("salt"), 1, out, NULL), 0);
    assert_hex(out, 32, "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b");
    ck_assert_int_eq(
        crypto_pbkdf2(slice_of_str("password"), slice_of_str("salt"), 4096, out, NULL), 0);
    assert_hex(out, 32, "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a");
    ck_assert_int_eq(
        crypto_pbkdf2(slice_of_str("password"), slice_of_str("salt"), 0, out, NULL), -1);
}
END_TEST

START_TEST(test_md5_hex)
{
    char out[33];

    ck_assert_int_eq(crypto_md5_hex(slice_of_str("abc"), slice_of_str(""), out, NULL), 0);
    ck_assert_str_eq(out, "900150983cd24fb0d6963f7d28e17f72");
    ck_assert_int_eq(crypto_md5_hex(slice_of_str("a"), slice_of_str("bc"), out, NULL), 0);
    ck_assert_str_eq(out, "900150983cd24fb0d6963f7d28e17f72");
}
END_TEST

START_TEST(test_random_differs)
{
    uint8_t a[32] = {0};
    uint8_t b[32] = {0};

    ck_assert_int_eq(crypto_random(a, sizeof a, NULL), 0);
    ck_assert_int_eq(crypto_random(b, sizeof b, NULL), 0);
    ck_assert(!crypto_equal(a, b, sizeof a));
    ck_assert(crypto_equal(a, a, sizeof a));
    b[31] = (uint8_t)(a[31] ^ 1);
    memcpy(b, a, 31);
    ck_assert(!crypto_equal(a, b, sizeof a));
}
END_TEST

static const char *const plain64[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
static const char *const text64[] = {
    "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};

START_TEST(test_base64_vectors)
{
    struct buf out = {0};
    char raw[16];
    size_t n;

    crypto_base64_encode(slice_of_str(plain64[_i]), &out);
    ck_assert(slice_eq_str(buf_slice(&out), text64[_i]));
    buf_free(&out);
    ck_assert_int_eq(crypto_base64_decode(slice_of_str(text64[_i]), raw, sizeof raw, &n), 0);
    ck_assert(slice_eq_str(slice_of(raw, n), plain64[_i]));
}
END_TEST

static const char *const bad64[] = {"Z", "Zg",
    "Zg=", "Zh==", "Zm9=", "=Zg=", "Zg==Zg==", "Z g=", "Zm9v\n", "====", "Zm=v", "Zm-_",
    "Zm9vYg==="};

START_TEST(test_base64_refuses)
{
    char raw[16];
    size_t n;

    ck_assert_int_eq(crypto_base64_decode(slice_of_str(bad64[_i]), raw, sizeof raw, &n), -1);
}
END_TEST

START_TEST(test_base64_respects_cap)
{
    char raw[4] = "###";
    size_t n;

    ck_assert_int_eq(crypto_base64_decode(slice_of_str("Zm9vYmFy"), raw, 3, &n), -1);
    ck_assert_int_eq(crypto_base64_decode(slice_of_str("Zm9v"), raw, 3, &n), 0);
    ck_assert_int_eq(crypto_base64_decode(slice_of_str("Zm8="), raw, 1, &n), -1);
}
END_TEST

/* Written by pg_enc of pgpool-II 4.3.5: key, password, text. */
static const char *const old_enc[][3] = {
    {"thekey", "secret", "jxddJAjYgkQUsTBNWr1WEg=="},
    {"mykey", "secret", "V7IMV7YNworqqZU1Z46Wgw=="},
    {"thekey", "secret2", "sxw8vusN31+we+WqgzJnGQ=="},
    {"thekey", "rootpw", "q0YgkU7FHQYho1BpGrmbtg=="},
    {"thekey", "a", "X7s3+E2DqxNfC7AJOaDtUg=="},
};

START_TEST(test_cbc_as_pgpool)
{
    struct slice key = slice_of_str(old_enc[_i][0]);
    struct buf out = {0};
    struct secret plain = {0};

    ck_assert_int_eq(cipher_cbc_encrypt(key, slice_of_str(old_enc[_i][1]), &out, NULL), 0);
    ck_assert(slice_eq_str(buf_slice(&out), old_enc[_i][2]));
    ck_assert_int_eq(cipher_cbc_decrypt(key, slice_of_str(old_enc[_i][2]), &plain, NULL), 0);
    ck_assert(slice_eq_str(secret_slice(&plain), old_enc[_i][1]));
    secret_free(&plain);
    buf_free(&out);
}
END_TEST

START_TEST(test_cbc_refuses)
{
    struct secret plain = {0};
    struct err err = {0};

    ck_assert_int_eq(cipher_cbc_decrypt(slice_of_str("wrong"),
                         slice_of_str("jxddJAjYgkQUsTBNWr1WEg=="), &plain, &err),
        -1);
    ck_assert_str_eq(err.sqlstate, "28000");
    ck_assert(secret_is_empty(&plain));
    ck_assert_int_eq(
        cipher_cbc_decrypt(slice_of_str("thekey"), slice_of_str("Zm9v"), &plain, NULL), -1);
    ck_assert_int_eq(
        cipher_cbc_decrypt(slice_of_str("thekey"), slice_of_str("!"), &plain, NULL), -1);
    ck_assert_int_eq(
        cipher_cbc_decrypt(slice_of_str("thekey"), slice_of_str(""), &plain, NULL), -1);
    ck_assert_int_eq(
        cipher_cbc_decrypt(slice_of_str(""), slice_of_str(old_enc[0][2]), &plain, NULL), -1);
}
END_TEST

START_TEST(test_ciphers_every_length)
{
    char text[CIPHER_MAX_PLAIN_BYTES + 1];
    struct slice key = slice_of_str("k");
    struct secret plain = {0};
    struct buf out = {0};
    size_t n;

    memset(text, 'x', sizeof text);
    for (n = 0; n <= CIPHER_MAX_PLAIN_BYTES; n += n < 66 ? 1 : 61) {
        buf_clear(&out);
        ck_assert_int_eq(cipher_cbc_encrypt(key, slice_of(text, n), &out, NULL), 0);
        ck_assert_int_eq(cipher_cbc_decrypt(key, buf_slice(&out), &plain, NULL), 0);
        ck_assert(slice_eq(secret_slice(&plain), slice_of(text, n)));
    }
    ck_assert_int_eq(cipher_cbc_encrypt(key, slice_of(text, sizeof text), &out, NULL), -1);
    ck_assert_int_eq(cipher_gcm_encrypt(key, slice_of(text, sizeof text), &out, NULL), -1);
    for (n = 0; n <= CIPHER_MAX_PLAIN_BYTES; n += 512) {
        buf_clear(&out);
        ck_assert_int_eq(cipher_gcm_encrypt(key, slice_of(text, n), &out, NULL), 0);
        ck_assert_int_eq(cipher_gcm_decrypt(key, buf_slice(&out), &plain, NULL), 0);
        ck_assert(slice_eq(secret_slice(&plain), slice_of(text, n)));
    }
    secret_free(&plain);
    buf_free(&out);
}
END_TEST

/* Every changed byte of a GCM record is noticed, and two records of one password differ. */
START_TEST(test_gcm_notices_changes)
{
    struct slice key = slice_of_str("thekey");
    struct buf one = {0};
    struct buf two = {0};
    struct buf bad = {0};
    struct secret plain = {0};
    uint8_t raw[256];
    size_t n;
    size_t i;

    ck_assert_int_eq(cipher_gcm_encrypt(key, slice_of_str("secret"), &one, NULL), 0);
    ck_assert_int_eq(cipher_gcm_encrypt(key, slice_of_str("secret"), &two, NULL), 0);
    ck_assert(!slice_eq(buf_slice(&one), buf_slice(&two)));
    ck_assert_int_eq(cipher_gcm_decrypt(slice_of_str("thekez"), buf_slice(&one), &plain, NULL), -1);
    ck_assert_int_eq(crypto_base64_decode(buf_slice(&one), raw, sizeof raw, &n), 0);
    for (i = 0; i < n; i += i < 5 ? 4 : 7) { /* not the iterations: those would only take long */
        raw[i] ^= 0x40;
        buf_clear(&bad);
        crypto_base64_encode(slice_of((const char *)raw, n), &bad);
        ck_assert_int_eq(cipher_gcm_decrypt(key, buf_slice(&bad), &plain, NULL), -1);
        raw[i] ^= 0x40;
    }
    buf_clear(&bad);
    crypto_base64_encode(slice_of((const char *)raw, n - 1), &bad);
    ck_assert_int_eq(cipher_gcm_decrypt(key, buf_slice(&bad), &plain, NULL), -1);
    ck_assert(secret_is_empty(&plain));
    buf_free(&one);
    buf_free(&two);
    buf_free(&bad);
}
END_TEST

/* Certificates signed with ECDSA and SHA-384, ECDSA and SHA-1, Ed25519. */
static const char cert_sha384[] =
    "MIIBbzCCARWgAwIBAgIUfSYKtok/vqLcJV0RY1NsD/i1NTwwCgYIKoZIzj0EAwMwDDEKMAgGA1UEAwwBYTAgFw0y"
    "NjExMjEwNTI3MjRaGA8yMTI2MTAyODA1MjcyNFowDDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEH"
    "A0IABDiZuCqjSFM9N3fcJt8Y+CwbPlyk5zzf83OCjLJTmt9HJ76O/10G43mwRCWf8Q94EFUoH206D4u0nApt07NM"
    "Q3CjUzBRMB0GA1UdDgQWBBSboVhNwxpbYqZAvtmZ7/t/uuKV9jAfBgNVHSMEGDAWgBSboVhNwxpbYqZAvtmZ7/t/"
    "uuKV9jAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMDA0gAMEUCIQDpHDS3+TVjuStSmTddSjXcywtnJu8rfjb/"
    "hZfAAfjrSQIgE4K9AT8Gbi+jNKj/upemgbe9iukGF2MsxJ++HfCFu+o=";
static const char cert_sha1[] =
    "MIIBbTCCARSgAwIBAgIUY7eu9NSRGrfOTNG1Ebyjd4XvergwCQYHKoZIzj0EATAMMQowCAYDVQQDDAFhMCAXDTI2"
    "MTEyMTA1MjcyNFoYDzIxMjYxMDI4MDUyNzI0WjAMMQowCAYDVQQDDAFhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD"
    "QgAEOJm4KqNIUz03d9wm3xj4LBs+XKTnPN/zc4KMslOa30cnvo7/XQbjebBEJZ/xD3gQVSgfbToPi7ScCm3Ts0xD"
    "cKNTMFEwHQYDVR0OBBYEFJuhWE3DGltipkC+2Znv+3+64pX2MB8GA1UdIwQYMBaAFJuhWE3DGltipkC+2Znv+3+6"
    "4pX2MA8GA1UdEwEB/wQFMAMBAf8wCQYHKoZIzj0EAQNIADBFAiEA4mN9ZIZfHIT/2U8X5IBff5tiWgIkJP5LvGRB"
    "sNq2yhkCIFONWJuTwRAs2vbwW8DplhoUUTD3xxWp/PwjIX6/jxBZ";
static const char cert_ed25519[] =
    "MIIBLjCB4aADAgECAhQTyLA8e+wBRFs6v7jAhTcOBctHLDAFBgMrZXAwDDEKMAgGA1UEAwwBYTAgFw0yNjExMjEw"
    "NTI3MjRaGA8yMTI2MTAyODA1MjcyNFowDDEKMAgGA1UEAwwBYTAqMAUGAytlcAMhAPCvoJj0UxGnA3/PclmWPkIr"
    "2ZHqKOLO9Vs6Q8CuUkoho1MwUTAdBgNVHQ4EFgQUWsyxSqZrS66zc4ERvSXXcKCl7s4wHwYDVR0jBBgwFoAUWsyx"
    "SqZrS66zc4ERvSXXcKCl7s4wDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXADQQBQ1E1RpFychOb5JO/rLQjf+d9euQ39"
    "Nlnsy4CMFN8WZgm5726KaDpDtob0B34fhZA7OK7bD4ce3WaADG0nXnUM";

static int cert_hash(const char *text, uint8_t out[CRYPTO_CERT_HASH_MAX], size_t *n)
{
    char der[1024];
    size_t len;

    ck_assert_int_eq(crypto_base64_decode(slice_of_str(text), der, sizeof der, &len), 0);
    return crypto_cert_hash(slice_of(der, len), out, n, NULL);
}

START_TEST(test_cert_hash)
{
    uint8_t out[CRYPTO_CERT_HASH_MAX];
    size_t n;

    ck_assert_int_eq(cert_hash(cert_sha384, out, &n), 0);
    ck_assert_uint_eq(n, 48);
    assert_hex(out, n,
        "9e0bb81a0c2968eba08fbcb187b450a7297594d975bafa235609b12a17b0a5e19c87ac5e2d476524cefe90db"
        "17a7a68c");
    ck_assert_int_eq(cert_hash(cert_sha1, out, &n), 0);
    assert_hex(out, n, "2c9b5f4a1e69cf7693731ef09ca4162ed3c9d556d554a491e70df3a22c6c362d");
    ck_assert_int_eq(cert_hash(cert_ed25519, out, &n), -1);
    ck_assert_int_eq(crypto_cert_hash(slice_of_str("no certificate"), out, &n, NULL), -1);
}
END_TEST

START_TEST(test_secret)
{
    struct secret a = {0};
    struct secret b = {0};

    ck_assert(secret_equal(&a, slice_of_str("")));
    ck_assert(!secret_equal(&a, slice_of_str("x")));
    secret_set(&a, slice_of_str("abcabc"));
    ck_assert(secret_equal(&a, slice_of_str("abcabc")));
    ck_assert(!secret_equal(&a, slice_of_str("abc")));
    ck_assert(!secret_equal(&a, slice_of_str("abcabcabc")));
    ck_assert(!secret_equal(&a, slice_of_str("")));
    secret_set(&a, slice_of(a.bytes + 1, 3));
    ck_assert(secret_equal(&a, slice_of_str("bca")));
    secret_move(&b, &a);
    ck_assert(secret_is_empty(&a));
    ck_assert(secret_equal(&b, slice_of_str("bca")));
    secret_free(&b);
    secret_free(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("crypto");
    TCase *tc = tcase_create("crypto");

    if (!crypto_is_built()) {
        printf("not built with OpenSSL\n");
        return 77;
    }
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_sha256_of_abc);
    tcase_add_test(tc, test_hmac_vectors);
    tcase_add_test(tc, test_pbkdf2_vectors);
    tcase_add_test(tc, test_md5_hex);
    tcase_add_test(tc, test_random_differs);
    tcase_add_loop_test(tc, test_base64_vectors, 0, 7);
    tcase_add_loop_test(tc, test_base64_refuses, 0, (int)(sizeof bad64 / sizeof bad64[0]));
    tcase_add_test(tc, test_base64_respects_cap);
    tcase_add_loop_test(tc, test_cbc_as_pgpool, 0, (int)(sizeof old_enc / sizeof old_enc[0]));
    tcase_add_test(tc, test_cbc_refuses);
    tcase_add_test(tc, test_ciphers_every_length);
    tcase_add_test(tc, test_gcm_notices_changes);
    tcase_add_test(tc, test_cert_hash);
    tcase_add_test(tc, test_secret);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
