/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/verify/provider.h"

static const struct tl_provider providers[] = {
    [TL_PROVIDER_TURNSTILE] = {"turnstile", "Cloudflare Turnstile",
                               "https://challenges.cloudflare.com/turnstile/v0/siteverify",
                               "https://challenges.cloudflare.com/turnstile/v0/api.js",
                               "https://challenges.cloudflare.com"},
    [TL_PROVIDER_HCAPTCHA] = {"hcaptcha", "hCaptcha", "https://api.hcaptcha.com/siteverify",
                              "https://js.hcaptcha.com/1/api.js",
                              "https://hcaptcha.com https://*.hcaptcha.com"},
    [TL_PROVIDER_RECAPTCHA] =
        {"recaptcha", "Google reCAPTCHA", "https://www.google.com/recaptcha/api/siteverify",
         "https://www.google.com/recaptcha/api.js",
         "https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/ "
         "https://recaptcha.google.com/recaptcha/"},
};

const struct tl_provider *tl_provider_of(enum tl_challenge_provider provider)
{
    return &providers[provider];
}
