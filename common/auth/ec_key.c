#include <string.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sodium.h>

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

static bool write_pem(EVP_PKEY *pkey, bool private, char pem[TL_EC_PEM_MAX])
{
    BIO *bio = BIO_new(BIO_s_secmem()); /* wiped when freed */
    bool written =
        bio != NULL && (private ? PEM_write_bio_PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL)
                                : PEM_write_bio_PUBKEY(bio, pkey)) == 1;
    int length = written ? BIO_read(bio, pem, TL_EC_PEM_MAX) : -1;
    BIO_free(bio);
    if (length <= 0 || length >= TL_EC_PEM_MAX)
        return false;
    pem[length] = '\0';
    return true;
}

static bool read_key(const char *pem, bool private, struct tl_ec_key *key)
{
    memset(key, 0, sizeof(*key));
    BIO *bio = BIO_new_mem_buf(pem, -1);
    if (bio == NULL)
        return false;
    EVP_PKEY *pkey = private ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL)
                             : PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
    bool ok = pkey != NULL && is_p256(pkey) && (!private || halves_match(pkey)) &&
              coordinate(pkey, OSSL_PKEY_PARAM_EC_PUB_X, key->x) &&
              coordinate(pkey, OSSL_PKEY_PARAM_EC_PUB_Y, key->y) &&
              write_pem(pkey, false, key->public_pem) &&
              (!private || write_pem(pkey, true, key->private_pem));
    EVP_PKEY_free(pkey);
    BIO_free(bio);
    if (!ok)
        sodium_memzero(key, sizeof(*key));
    return ok;
}

bool tl_ec_key_read_private(const char *pem, struct tl_ec_key *key, struct tl_error *err)
{
    return read_key(pem, true, key) ||
           tl_error_set(err, TL_ERR_INVALID,
                        "expected an unencrypted P-256 private key in PEM; make one with: openssl "
                        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256");
}

bool tl_ec_key_read_public(const char *pem, struct tl_ec_key *key, struct tl_error *err)
{
    return read_key(pem, false, key) ||
           tl_error_set(err, TL_ERR_INVALID,
                        "expected a P-256 public key in PEM; take it from its private key with: "
                        "openssl pkey -in private.pem -pubout");
}

bool tl_ec_key_generate(char pem[TL_EC_PEM_MAX], struct tl_error *err)
{
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    bool made = pkey != NULL && write_pem(pkey, true, pem);
    EVP_PKEY_free(pkey);
    return made || tl_error_set(err, TL_ERR_SYSTEM, "OpenSSL cannot make a P-256 key");
}
