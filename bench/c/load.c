/* Sends one request over and over, checks every answer, and tells how many there were and how long they took.

       load PORT REQUEST_FILE CONNECTIONS IN_FLIGHT

   The file has a whole frame: a Produce v7 for one topic, with acks of 1 or -1, or a Fetch v11, whose answer has to have
   records of its first partition. When all connections to 127.0.0.1 are open, it prints `connected`. Then each line of
   standard input is a number of requests, which it sends over all connections together, with at most IN_FLIGHT without
   an answer on each; then it prints a line of JSON. It ends with standard input. An answer that is not the one that is
   due, or has an error for a partition, ends it with a message and exit status 1.

   One thread waits for all sockets at once. Requests are not copied: each is sent as 12 bytes of its own, which hold its
   correlation id, and the rest, which all of them share.
*/
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"

enum {
    OWN_BYTES = 12, /* size, API key, version and correlation id */
    CORRELATION_ID_AT = 8,
    REQUESTS_AT_ONCE = 32, /* in one call of sendmsg */
    EVENTS_AT_ONCE = 256,
    READ_AT_LEAST = 64 * 1024,
    STALLED_MS = 60 * 1000,
    FETCH = 1,
    FETCH_VERSION = 11,
};

typedef struct {
    int socket;
    bool waits_for_room; /* the kernel took no more bytes */
    int32_t begun, sent, answered; /* requests; the correlation id of one is how many had begun before it */
    size_t partly_sent; /* how many bytes the kernel has of the request after those that are sent */
    double *begun_at; /* before its first byte was sent, for each request in flight; at its number modulo IN_FLIGHT, */
    unsigned char (*own)[OWN_BYTES]; /* as its own bytes are */
    unsigned char *read; /* bytes of answers that are not complete yet */
    size_t have, room;
} Connection;

static unsigned char *request;
static size_t request_bytes;
static bool is_fetch;
static ProduceStart asked;
static int in_flight;
static int poller;
static long left_to_begin;
static double *latencies;
static long answered;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void read_request(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail("%s: %s", path, strerror(errno));
    long bytes = ftell(file);
    if (bytes <= OWN_BYTES)
        fail("%s holds no request", path);
    rewind(file);
    request_bytes = (size_t)bytes;
    request = memory(NULL, request_bytes);
    if (fread(request, 1, request_bytes, file) != request_bytes)
        fail("%s: %s", path, strerror(errno));
    fclose(file);
    Reader reader = {request, request_bytes, false};
    int32_t size = take_int32(&reader);
    Header header = take_header(&reader);
    is_fetch = header.api_key == FETCH && header.version == FETCH_VERSION;
    if (size != bytes - SIZE_BYTES || (!is_fetch && (header.api_key != PRODUCE || header.version != PRODUCE_VERSION)))
        fail("%s is no frame of Produce v%d or Fetch v%d", path, PRODUCE_VERSION, FETCH_VERSION);
    if (is_fetch)
        return;
    if (!take_produce_start(&reader, &asked) || asked.acks == 0)
        fail("%s is no Produce to one topic that is answered", path);
}

static void watch(Connection *connection, int operation)
{
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = connection};
    if (connection->waits_for_room)
        wanted.events |= EPOLLOUT;
    if (epoll_ctl(poller, operation, connection->socket, &wanted) != 0)
        fail("epoll_ctl: %s", strerror(errno));
}

static void open_connection(Connection *connection, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *connection = (Connection){.socket = socket(AF_INET, SOCK_STREAM, 0)};
    if (connection->socket < 0 || connect(connection->socket, (struct sockaddr *)&address, sizeof address) != 0)
        fail("connect to port %d: %s", port, strerror(errno));
    int yes = 1;
    if (setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ||
        fcntl(connection->socket, F_SETFL, O_NONBLOCK) != 0)
        fail("setting up a socket: %s", strerror(errno));
    connection->begun_at = memory(NULL, (size_t)in_flight * sizeof *connection->begun_at);
    connection->own = memory(NULL, (size_t)in_flight * sizeof *connection->own);
    for (int number = 0; number < in_flight; number++)
        memcpy(connection->own[number], request, OWN_BYTES);
    connection->room = READ_AT_LEAST;
    connection->read = memory(NULL, connection->room);
    watch(connection, EPOLL_CTL_ADD);
}

/* Point `parts` at what is to be sent of requests that have begun; returns how many parts that are. */
static int parts_to_send(const Connection *connection, struct iovec *parts)
{
    int count = 0;
    size_t skipped = connection->partly_sent;
    for (int32_t each = connection->sent; each < connection->begun && count + 2 <= 2 * REQUESTS_AT_ONCE; each++) {
        if (skipped < OWN_BYTES) {
            parts[count].iov_base = connection->own[each % in_flight] + skipped;
            parts[count++].iov_len = OWN_BYTES - skipped;
            skipped = OWN_BYTES;
        }
        parts[count].iov_base = request + skipped;
        parts[count++].iov_len = request_bytes - skipped;
        skipped = 0;
    }
    return count;
}

/* Begin as many requests as may be in flight, and send what the kernel takes of them. */
static void send_requests(Connection *connection)
{
    while (left_to_begin > 0 && connection->begun - connection->answered < in_flight) {
        put_int32(connection->own[connection->begun % in_flight] + CORRELATION_ID_AT, connection->begun);
        connection->begun_at[connection->begun++ % in_flight] = now();
        left_to_begin--;
    }
    bool is_full = false;
    while (connection->sent < connection->begun && !is_full) {
        struct iovec parts[2 * REQUESTS_AT_ONCE];
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)parts_to_send(connection, parts)};
        ssize_t taken = sendmsg(connection->socket, &message, MSG_NOSIGNAL);
        if (taken < 0 && errno != EAGAIN && errno != EINTR)
            fail("sending: %s", strerror(errno));
        is_full = taken < 0 && errno == EAGAIN;
        if (taken > 0) {
            size_t bytes = connection->partly_sent + (size_t)taken;
            connection->sent += (int32_t)(bytes / request_bytes);
            connection->partly_sent = bytes % request_bytes;
        }
    }
    if (is_full != connection->waits_for_room) {
        connection->waits_for_room = is_full;
        watch(connection, EPOLL_CTL_MOD);
    }
}

/* What a Fetch is answered with: no error, and records of the first partition. */
static void check_fetched(Reader *reader)
{
    take_int32(reader); /* how long the client is throttled */
    int16_t error = take_int16(reader);
    take_int32(reader); /* session */
    int32_t topics = take_int32(reader);
    int16_t length;
    take_string(reader, &length);
    int32_t partitions = take_int32(reader);
    take_int32(reader); /* partition */
    int16_t of_partition = take_int16(reader);
    take(reader, 8 + 8 + 8); /* high watermark, last stable offset, first offset of the log */
    int32_t aborted = take_int32(reader);
    take(reader, aborted > 0 ? (size_t)aborted * 16 : 0);
    take_int32(reader); /* preferred replica */
    int32_t records = take_int32(reader);
    if (reader->is_short || topics < 1 || partitions < 1)
        fail("an answer to a Fetch has no partition");
    if (error != 0 || of_partition != 0 || records <= 0)
        fail("Fetch returned errors %d and %d, and %d bytes", error, of_partition, records);
}

/* The answer to the oldest request without one: its correlation id, and no error for any of the partitions. */
static void check_answer(const Connection *connection, const unsigned char *frame, size_t bytes)
{
    Reader reader = {frame, bytes, false};
    int32_t correlation_id = take_int32(&reader);
    if (correlation_id != connection->answered)
        fail("answer %d came where %d was due", correlation_id, connection->answered);
    if (is_fetch) {
        check_fetched(&reader);
        return;
    }
    int32_t topics = take_int32(&reader);
    int16_t length;
    const unsigned char *topic = take_string(&reader, &length);
    if (topics != 1 || length != asked.topic_length || memcmp(topic, asked.topic, (size_t)length) != 0)
        fail("an answer is not for the topic of its request");
    int32_t partitions = take_int32(&reader);
    if (partitions != asked.partitions)
        fail("an answer has %d partitions, its request %d", partitions, asked.partitions);
    for (int32_t each = 0; each < partitions; each++) {
        int32_t partition = take_int32(&reader);
        int16_t error = take_int16(&reader);
        take(&reader, 8 + 8 + 8); /* offset of the batch, its time, first offset of the log */
        if (error != 0 && !reader.is_short)
            fail("Produce returned error %d for partition %d", error, partition);
    }
    take_int32(&reader); /* how long the client is throttled */
    if (reader.is_short || reader.left != 0)
        fail("an answer of %zu bytes is not as long as its fields", bytes);
}

/* Look at the answers that are complete, and keep the bytes of the one that is not. */
static void take_answers(Connection *connection)
{
    size_t used = 0;
    while (connection->have - used >= SIZE_BYTES) {
        int32_t size = int32_at(connection->read + used);
        if (size < 0 || size > MAX_FRAME)
            fail("an answer of %d bytes", size);
        size_t needed = SIZE_BYTES + (size_t)size;
        if (connection->have - used < needed) {
            if (needed > connection->room) {
                connection->room = needed;
                connection->read = memory(connection->read, needed);
            }
            break;
        }
        check_answer(connection, connection->read + used + SIZE_BYTES, (size_t)size);
        latencies[answered++] = now() - connection->begun_at[connection->answered++ % in_flight];
        used += needed;
    }
    connection->have -= used;
    memmove(connection->read, connection->read + used, connection->have);
}

static void read_answers(Connection *connection)
{
    ssize_t got = recv(connection->socket, connection->read + connection->have, connection->room - connection->have, 0);
    if (got == 0)
        fail("the broker has closed a connection with %d requests in flight", connection->begun - connection->answered);
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        fail("receiving: %s", strerror(errno));
    if (got > 0) {
        connection->have += (size_t)got;
        take_answers(connection);
    }
}

static int by_size(const void *one, const void *other)
{
    double first = *(const double *)one, second = *(const double *)other;
    return (first > second) - (first < second);
}

static void run(Connection *connections, int count, long requests)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    latencies = memory(latencies, (size_t)requests * sizeof *latencies);
    answered = 0;
    left_to_begin = requests;
    double began = now();
    for (int number = 0; number < count && left_to_begin > 0; number++)
        send_requests(&connections[number]);
    while (answered < requests) {
        int ready = epoll_wait(poller, events, EVENTS_AT_ONCE, STALLED_MS);
        if (ready == 0)
            fail("no answer for %d s; %ld of %ld came", STALLED_MS / 1000, answered, requests);
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait: %s", strerror(errno));
        for (int number = 0; number < ready; number++) {
            Connection *connection = events[number].data.ptr;
            if (events[number].events & ~(uint32_t)EPOLLOUT)
                read_answers(connection);
            send_requests(connection);
        }
    }
    double seconds = now() - began;
    qsort(latencies, (size_t)requests, sizeof *latencies, by_size);
    printf("{\"requests_s\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"seconds\": %.6f}\n", (double)requests / seconds,
           latencies[requests / 2] * 1e6, latencies[requests * 99 / 100] * 1e6, seconds);
    fflush(stdout);
}

int main(int count, char **words)
{
    if (count != 5)
        fail("usage: load PORT REQUEST_FILE CONNECTIONS IN_FLIGHT");
    int port = (int)number(words[1], 1, 65535);
    read_request(words[2]);
    int connected = (int)number(words[3], 1, 1 << 20);
    in_flight = (int)number(words[4], 1, 1 << 16);
    raise_open_files();
    poller = epoll_create1(0);
    if (poller < 0)
        fail("epoll_create1: %s", strerror(errno));
    Connection *connections = memory(NULL, (size_t)connected * sizeof *connections);
    for (int each = 0; each < connected; each++)
        open_connection(&connections[each], port);
    puts("connected");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        run(connections, connected, number(line, 1, 1L << 30));
    }
    return 0;
}
