/* A server that got slower: with this library preloaded, each answer "+OK" takes so many microseconds of CPU more
 * (KVFAIR_TEST_BURN_US). Built by tests/cli/regressions.rs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

ssize_t write(int file, const void *bytes, size_t count)
{
    static ssize_t (*real)(int, const void *, size_t);
    static long burn_ns = -1;
    if (!real) {
        real = dlsym(RTLD_NEXT, "write");
        const char *text = getenv("KVFAIR_TEST_BURN_US");
        burn_ns = text ? atol(text) * 1000 : 0;
    }
    if (burn_ns > 0 && count >= 3 && memcmp(bytes, "+OK", 3) == 0) {
        long until = cpu_ns() + burn_ns;
        while (cpu_ns() < until)
            ;
    }
    return real(file, bytes, count);
}
