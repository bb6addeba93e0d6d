/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "common/auth/ec_key.h"

/* Instead of asking for a passphrase on the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

static bool is_p256(const EVP_PKEY *pkey)
{
    char group[32];
    return EVP_PKEY_is_a(pkey, "EC") && EVP_PKEY_get_group_name(pkey, group, sizeof(group), NULL) &&
           strcmp(group, "prime256v1") == 0;
}

static bool halves_match(EVP_PKEY *pkey)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
    bool match = context != NULL && EVP_PKEY_pairwise_check(context) == 1;
    EVP_PKEY_CTX_free(context);
    return match;
}

static bool coordinate(const EVP_PKEY *pkey, const char *name, unsigned char *bytes)
{
    BIGNUM *number = NULL;
    bool ok = EVP_PKEY_get_bn_param(pkey, name, &number) &&
              BN_bn2binpad(number, bytes, TL_EC_COORDINATE_BYTES) == TL_EC_COORDINATE_BYTES;
    BN_free(number);
    return ok;
}

/* A context that is ready to sign or to verify as often as wanted: to make one takes longer than to
 * use it. */
static EVP_PKEY_CTX *prepare(EVP_PKEY *pkey, int (*init)(EVP_PKEY_CTX *))
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
    if (context != NULL &&
        (init(context) != 1 || EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) != 1)) {
        EVP_PKEY_CTX_free(context);
        context = NULL;
    }
    return context;
}

bool tl_ec_key_read(const char *pem, bool private, struct tl_ec_key *key, struct tl_error *err)
{
    memset(key, 0, sizeof(*key));
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *pkey = NULL;
    if (bio != NULL)
        pkey = private ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL)
                       : PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
    bool ok = pkey != NULL && is_p256(pkey) && (!private || halves_match(pkey)) &&
              coordinate(pkey, OSSL_PKEY_PARAM_EC_PUB_X, key->x) &&
              coordinate(pkey, OSSL_PKEY_PARAM_EC_PUB_Y, key->y) &&
              (key->verifier = prepare(pkey, EVP_PKEY_verify_init)) != NULL &&
              (!private || (key->signer = prepare(pkey, EVP_PKEY_sign_init)) != NULL);
    EVP_PKEY_free(pkey); /* the contexts hold it */
    BIO_free(bio);
    if (ok)
        return true;
    tl_ec_key_free(key);
    return tl_error_set(err, TL_ERR_INVALID, "%s",
                        private
                            ? "expected an unencrypted P-256 private key in PEM; make one with: "
                              "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"
                            : "expected a P-256 public key in PEM; take it from its private key "
                              "with: openssl pkey -in private.pem -pubout");
}

void tl_ec_key_free(struct tl_ec_key *key)
{
    EVP_PKEY_CTX_free(key->signer);
    EVP_PKEY_CTX_free(key->verifier);
    memset(key, 0, sizeof(*key));
}

static bool write_pem(EVP_PKEY *pkey, char pem[TL_EC_PEM_MAX])
{
    BIO *bio = BIO_new(BIO_s_secmem()); /* wiped when freed */
    bool written =
        bio != NULL && PEM_write_bio_PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL) == 1;
    int length = written ? BIO_read(bio, pem, TL_EC_PEM_MAX) : -1;
    BIO_free(bio);
    if (length <= 0 || length >= TL_EC_PEM_MAX)
        return false;
    pem[length] = '\0';
    return true;
}

bool tl_ec_key_generate(char pem[TL_EC_PEM_MAX], struct tl_error *err)
{
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    bool made = pkey != NULL && write_pem(pkey, pem);
    EVP_PKEY_free(pkey);
    return made || tl_error_set(err, TL_ERR_SYSTEM, "OpenSSL cannot make a P-256 key");
}

/* ---- signatures: R and S here, DER in OpenSSL ---- */

enum { DER_MAX = 72 };

bool tl_ec_key_sign(const struct tl_ec_key *key, const unsigned char hash[TL_EC_HASH_BYTES],
                    unsigned char signature[TL_EC_SIGNATURE_BYTES])
{
    unsigned char der[DER_MAX];
    const unsigned char *at = der;
    size_t length = sizeof(der);
    if (EVP_PKEY_sign(key->signer, der, &length, hash, TL_EC_HASH_BYTES) != 1)
        return false;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)length);
    bool written = pair != NULL &&
                   BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, TL_EC_COORDINATE_BYTES) > 0 &&
                   BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + TL_EC_COORDINATE_BYTES,
                                TL_EC_COORDINATE_BYTES) > 0;
    ECDSA_SIG_free(pair);
    return written;
}

bool tl_ec_key_verify(const struct tl_ec_key *key, const unsigned char hash[TL_EC_HASH_BYTES],
                      const unsigned char signature[TL_EC_SIGNATURE_BYTES])
{
    unsigned char der[DER_MAX];
    unsigned char *at = der;
    BIGNUM *r = BN_bin2bn(signature, TL_EC_COORDINATE_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(signature + TL_EC_COORDINATE_BYTES, TL_EC_COORDINATE_BYTES, NULL);
    ECDSA_SIG *pair = ECDSA_SIG_new();
    int length = -1;
    if (pair != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(pair, r, s) == 1) {
        length = i2d_ECDSA_SIG(pair, &at);
    } else { /* else the pair owns them */
        BN_free(r);
        BN_free(s);
    }
    bool genuine = length > 0 &&
                   EVP_PKEY_verify(key->verifier, der, (size_t)length, hash, TL_EC_HASH_BYTES) == 1;
    ECDSA_SIG_free(pair);
    if (!genuine)
        ERR_clear_error();
    return genuine;
}
