/* A broker without anything in it: it reads framed requests, drops them, and answers as a broker would that has stored them.

       sink PORT

   It listens on 127.0.0.1. A Produce v7 to one topic is answered without an error for each of its partitions, a Metadata
   v1 with the sink as the only broker, without topics. Anything else ends the connection. What a load on it costs is the
   kernel's part of what the same load costs a broker, and the least that a program does for it.

   One thread waits for all sockets at once. Answers to the requests of one read leave with one write. A connection whose
   answers the client does not take is not read from until it does.
*/
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frames.h"

enum {
    KEPT_BYTES = 1024, /* of a request: client id, topic and number of partitions are within them */
    READ_BYTES = 256 * 1024,
    EVENTS_AT_ONCE = 256,
    BACKLOG = 4096,
    PARTITION_BYTES = 4 + 2 + 8 + 8 + 8,
};

typedef struct {
    int socket;
    bool waits_for_room;
    unsigned char size[SIZE_BYTES];
    size_t size_bytes; /* how many of the bytes of the size have come */
    size_t left; /* of the request */
    unsigned char kept[KEPT_BYTES]; /* its first bytes */
    size_t kept_bytes;
    unsigned char *answers;
    size_t have, sent, room;
} Connection;

static int poller;
static int own_port;
static unsigned char received[READ_BYTES];

static size_t smaller(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* Room for an answer behind the others, after its size and its correlation id. */
static unsigned char *begin_answer(Connection *connection, size_t body_bytes, int32_t correlation_id)
{
    size_t bytes = SIZE_BYTES + 4 + body_bytes;
    if (connection->have + bytes > connection->room) {
        connection->room = 2 * (connection->have + bytes);
        connection->answers = memory(connection->answers, connection->room);
    }
    unsigned char *at = connection->answers + connection->have;
    connection->have += bytes;
    return put_int32(put_int32(at, (int32_t)(4 + body_bytes)), correlation_id);
}

static bool answer_produce(Connection *connection, Reader *reader, int32_t correlation_id)
{
    ProduceStart asked;
    if (!take_produce_start(reader, &asked) || asked.partitions > MAX_FRAME / PARTITION_BYTES)
        return false;
    if (asked.acks == 0)
        return true;
    size_t name_bytes = (size_t)asked.topic_length;
    size_t bytes = 4 + 2 + name_bytes + 4 + (size_t)asked.partitions * PARTITION_BYTES + 4;
    unsigned char *at = begin_answer(connection, bytes, correlation_id);
    at = put_int16(put_int32(at, 1), asked.topic_length);
    memcpy(at, asked.topic, name_bytes);
    at = put_int32(at + name_bytes, asked.partitions);
    for (int32_t partition = 0; partition < asked.partitions; partition++) {
        at = put_int16(put_int32(at, partition), 0);
        memset(at, 0, 8); /* the offset of the batch */
        memset(at + 8, 0xff, 8); /* no time of its own */
        memset(at + 16, 0, 8); /* the first offset of the log */
        at += 24;
    }
    put_int32(at, 0); /* it throttles nobody */
    return true;
}

static void answer_metadata(Connection *connection, int32_t correlation_id)
{
    static const char host[] = "127.0.0.1";
    const int16_t host_bytes = sizeof host - 1;
    unsigned char *at = begin_answer(connection, (size_t)(4 + 4 + 2 + host_bytes + 4 + 2 + 4 + 4), correlation_id);
    at = put_int16(put_int32(put_int32(at, 1), 1), host_bytes); /* one broker, with the id 1 */
    memcpy(at, host, (size_t)host_bytes);
    at = put_int16(put_int32(at + host_bytes, own_port), -1); /* in no rack */
    put_int32(put_int32(at, 1), 0); /* the controller, and no topics */
}

/* Answer the request that has come; false when it is not one of the two. */
static bool answer(Connection *connection)
{
    Reader reader = {connection->kept, connection->kept_bytes, false};
    Header header = take_header(&reader);
    if (header.api_key == PRODUCE && header.version == PRODUCE_VERSION)
        return answer_produce(connection, &reader, header.correlation_id);
    if (header.api_key != METADATA || header.version != METADATA_VERSION || reader.is_short)
        return false;
    answer_metadata(connection, header.correlation_id);
    return true;
}

/* Take in bytes of requests, and answer those that are complete. */
static bool take_in(Connection *connection, const unsigned char *at, size_t bytes)
{
    while (bytes > 0) {
        size_t used;
        if (connection->size_bytes < SIZE_BYTES) {
            used = smaller(bytes, SIZE_BYTES - connection->size_bytes);
            memcpy(connection->size + connection->size_bytes, at, used);
            connection->size_bytes += used;
            int32_t size = int32_at(connection->size);
            if (connection->size_bytes == SIZE_BYTES && (size <= 0 || size > MAX_FRAME))
                return false;
            connection->left = (size_t)size;
        } else {
            used = smaller(bytes, connection->left);
            size_t kept = smaller(used, KEPT_BYTES - connection->kept_bytes);
            memcpy(connection->kept + connection->kept_bytes, at, kept);
            connection->kept_bytes += kept;
            connection->left -= used;
            if (connection->left == 0) {
                if (!answer(connection))
                    return false;
                connection->size_bytes = connection->kept_bytes = 0;
            }
        }
        at += used;
        bytes -= used;
    }
    return true;
}

/* Send what the kernel takes of the answers; false when the client is gone. */
static bool send_answers(Connection *connection)
{
    while (connection->sent < connection->have) {
        const unsigned char *at = connection->answers + connection->sent;
        ssize_t taken = send(connection->socket, at, connection->have - connection->sent, MSG_NOSIGNAL);
        if (taken < 0 && errno == EAGAIN)
            break;
        if (taken < 0 && errno != EINTR)
            return false;
        if (taken > 0)
            connection->sent += (size_t)taken;
    }
    bool is_full = connection->sent < connection->have;
    if (!is_full)
        connection->sent = connection->have = 0;
    if (is_full != connection->waits_for_room) {
        connection->waits_for_room = is_full;
        struct epoll_event wanted = {.events = is_full ? EPOLLOUT : EPOLLIN, .data.ptr = connection};
        if (epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &wanted) != 0)
            fail("epoll_ctl: %s", strerror(errno));
    }
    return true;
}

/* One turn of a connection that is ready; false when it is to be closed. */
static bool serve(Connection *connection)
{
    if (connection->waits_for_room)
        return send_answers(connection);
    ssize_t got = recv(connection->socket, received, sizeof received, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    return got > 0 && take_in(connection, received, (size_t)got) && send_answers(connection);
}

static void accept_connection(int listener)
{
    int accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (accepted < 0) {
        if (errno == EMFILE || errno == ENFILE)
            fail("accept: %s", strerror(errno));
        return; /* the client has left meanwhile */
    }
    int yes = 1;
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    Connection *connection = memory(NULL, sizeof *connection);
    *connection = (Connection){.socket = accepted};
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, accepted, &wanted) != 0)
        fail("epoll_ctl: %s", strerror(errno));
}

static int listen_on(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int yes = 1;
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, BACKLOG) != 0)
        fail("port %d: %s", port, strerror(errno));
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &wanted) != 0)
        fail("epoll_ctl: %s", strerror(errno));
    return listener;
}

int main(int count, char **words)
{
    if (count != 2)
        fail("usage: sink PORT");
    own_port = (int)number(words[1], 1, 65535);
    raise_open_files();
    poller = epoll_create1(0);
    if (poller < 0)
        fail("epoll_create1: %s", strerror(errno));
    int listener = listen_on(own_port);
    struct epoll_event events[EVENTS_AT_ONCE];
    for (;;) {
        int ready = epoll_wait(poller, events, EVENTS_AT_ONCE, -1);
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait: %s", strerror(errno));
        for (int each = 0; each < ready; each++) {
            Connection *connection = events[each].data.ptr;
            if (connection == NULL) {
                accept_connection(listener);
            } else if (!serve(connection)) {
                close(connection->socket);
                free(connection->answers);
                free(connection);
            }
        }
    }
}
