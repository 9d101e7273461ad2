/* What a process is told of the time, and how long the disk takes: loaded into it before the C library (LD_PRELOAD).
 *
 * The file that OTTLA_JEPSEN_TAMPERING names holds two 64-bit numbers, which may change at any time: nanoseconds to add to the wall
 * clock, and microseconds that each fsync takes longer. Clocks that only run forward are left as they are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *told;
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

static void __attribute__((constructor)) begin(void) {
    const char *path = getenv("OTTLA_JEPSEN_TAMPERING");
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *page = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        told = page == MAP_FAILED ? NULL : page;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real_clock_gettime) /* a library that asks before ours has begun */
        real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_clock_gettime(clock, now);
    if (result == 0 && told && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t nanoseconds = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + told[0];
        now->tv_sec = nanoseconds / 1000000000;
        now->tv_nsec = nanoseconds % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (where)
        *where = exact.tv_sec;
    return exact.tv_sec;
}

static void linger(void) {
    if (told && told[1] > 0)
        usleep((useconds_t)told[1]);
}

int fsync(int file) {
    linger();
    return real_fsync(file);
}

int fdatasync(int file) {
    linger();
    return real_fdatasync(file);
}
