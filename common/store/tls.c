/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "common/store/tls.h"

/* What OpenSSL says of the last failure. */
static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "no reason given";
}

SSL_CTX *tl_tls_trust_new(const char *ca_file, struct tl_error *err)
{
    SSL_CTX *trust = SSL_CTX_new(TLS_client_method());
    if (trust == NULL || SSL_CTX_set_min_proto_version(trust, TLS1_2_VERSION) != 1) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for TLS to the store");
        SSL_CTX_free(trust);
        return NULL;
    }
    SSL_CTX_set_verify(trust, SSL_VERIFY_PEER, NULL);
    ERR_clear_error();
    int loaded = ca_file[0] != '\0' ? SSL_CTX_load_verify_locations(trust, ca_file, NULL)
                                    : SSL_CTX_set_default_verify_paths(trust);
    if (loaded == 1)
        return trust;
    tl_error_set(err, TL_ERR_INVALID, "redis.ca_file \"%s\": no certificates can be read: %s",
                 ca_file, reason());
    SSL_CTX_free(trust);
    return NULL;
}

void tl_tls_trust_free(SSL_CTX *trust)
{
    SSL_CTX_free(trust);
}

/* The certificate must be of this host. */
static bool expect(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *wanted = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1)
        return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* Why a call returned `result`, with the errno it left. */
static bool fail(const SSL *tls, int result, struct tl_error *err)
{
    int saved = errno;
    int kind = SSL_get_error(tls, result);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
        return tl_error_set(err, TL_ERR_TIMEOUT, "the store did not answer in time (TLS)");
    if (kind == SSL_ERROR_ZERO_RETURN || (kind == SSL_ERROR_SYSCALL && saved == 0))
        return tl_error_set(err, TL_ERR_CONNECT, "the store closed the connection (TLS)");
    return tl_error_set(err, TL_ERR_CONNECT, "the connection to the store broke (TLS): %s",
                        kind == SSL_ERROR_SYSCALL ? strerror(saved) : reason());
}

/* May the call be repeated, because a signal interrupted it? */
static bool interrupted(const SSL *tls, int result)
{
    return result <= 0 && errno == EINTR && SSL_want(tls) != SSL_NOTHING;
}

static bool shake_hands(SSL *tls, const char *host, struct tl_error *err)
{
    int result;
    do {
        ERR_clear_error();
        errno = 0;
        result = SSL_connect(tls);
    } while (interrupted(tls, result));
    long verdict = SSL_get_verify_result(tls);
    if (result == 1 && verdict == X509_V_OK)
        return true;
    if (verdict != X509_V_OK)
        return tl_error_set(err, TL_ERR_CONNECT,
                            "the certificate of the store at %s is refused: %s; see redis.ca_file",
                            host, X509_verify_cert_error_string(verdict));
    return fail(tls, result, err);
}

SSL *tl_tls_open(SSL_CTX *trust, int fd, const char *host, struct tl_error *err)
{
    SSL *tls = SSL_new(trust);
    if (tls == NULL || SSL_set_fd(tls, fd) != 1 || !expect(tls, host))
        tl_error_set(err, TL_ERR_NOMEM, "no memory for TLS to the store");
    else if (shake_hands(tls, host, err))
        return tls;
    tl_tls_close(&tls);
    return NULL;
}

void tl_tls_close(SSL **tls)
{
    SSL_free(*tls);
    *tls = NULL;
}

bool tl_tls_write(SSL *tls, const char *bytes, size_t n, struct tl_error *err)
{
    int result;
    size_t written;
    do { /* without SSL_MODE_ENABLE_PARTIAL_WRITE a success has written all */
        ERR_clear_error();
        errno = 0;
        result = SSL_write_ex(tls, bytes, n, &written);
    } while (interrupted(tls, result));
    return result == 1 || fail(tls, result, err);
}

size_t tl_tls_read(SSL *tls, char *bytes, size_t size, struct tl_error *err)
{
    int result;
    size_t n = 0;
    do {
        ERR_clear_error();
        errno = 0;
        result = SSL_read_ex(tls, bytes, size, &n);
    } while (interrupted(tls, result));
    if (result == 1)
        return n;
    (void)fail(tls, result, err);
    return 0;
}
