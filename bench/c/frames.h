/* What the load generator and the sink share: numbers of the wire, and the start of a Produce request.

   Kafka's protocol is big-endian. A frame is a size of four bytes and so many bytes after it. Of Produce, version 7 is
   read here: its fields have no tags, and brokers of today still take it.
*/
#ifndef OTTLA_BENCH_FRAMES_H
#define OTTLA_BENCH_FRAMES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PRODUCE = 0, METADATA = 3, PRODUCE_VERSION = 7, METADATA_VERSION = 1 };
enum { SIZE_BYTES = 4, MAX_FRAME = 200 * 1024 * 1024 };

/* End the program with a message. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* Memory for so many bytes, in the place of what was at `old`; it ends the program where there is none. */
static inline void *memory(void *old, size_t bytes)
{
    void *found = realloc(old, bytes);
    if (found == NULL)
        fail("no memory for %zu bytes", bytes);
    return found;
}

/* A number from the command line, which has to be in its range. */
static inline long number(const char *text, long least, long most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > most)
        fail("%s is not a number from %ld to %ld", text, least, most);
    return value;
}

/* As many descriptors as the machine grants, for every connection is one. */
static inline void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Bytes that are read one field after the other. A read past the end sets `is_short`, and yields zeros. */
typedef struct {
    const unsigned char *at;
    size_t left;
    bool is_short;
} Reader;

static inline const unsigned char *take(Reader *reader, size_t bytes)
{
    static const unsigned char zeros[8];
    if (reader->left < bytes) {
        reader->is_short = true;
        reader->left = 0;
        return zeros;
    }
    const unsigned char *taken = reader->at;
    reader->at += bytes;
    reader->left -= bytes;
    return taken;
}

static inline int16_t int16_at(const unsigned char *at)
{
    return (int16_t)(at[0] << 8 | at[1]);
}

static inline int32_t int32_at(const unsigned char *at)
{
    return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3]);
}

static inline int16_t take_int16(Reader *reader)
{
    return int16_at(take(reader, 2));
}

static inline int32_t take_int32(Reader *reader)
{
    return int32_at(take(reader, 4));
}

/* The bytes of a string of the wire, whose length goes to `length`: 0 for null, too. */
static inline const unsigned char *take_string(Reader *reader, int16_t *length)
{
    *length = take_int16(reader);
    if (*length < 0)
        *length = 0;
    const unsigned char *found = take(reader, (size_t)*length);
    if (reader->is_short)
        *length = 0;
    return found;
}

static inline unsigned char *put_int16(unsigned char *at, int16_t value)
{
    *at++ = (unsigned char)((uint16_t)value >> 8);
    *at++ = (unsigned char)value;
    return at;
}

static inline unsigned char *put_int32(unsigned char *at, int32_t value)
{
    at = put_int16(at, (int16_t)((uint32_t)value >> 16));
    return put_int16(at, (int16_t)value);
}

/* What every request begins with. */
typedef struct {
    int16_t api_key, version;
    int32_t correlation_id;
} Header;

static inline Header take_header(Reader *reader)
{
    Header header;
    int16_t client_id_length;
    header.api_key = take_int16(reader);
    header.version = take_int16(reader);
    header.correlation_id = take_int32(reader);
    take_string(reader, &client_id_length);
    return header;
}

typedef struct {
    int16_t acks;
    const unsigned char *topic;
    int16_t topic_length;
    int32_t partitions;
} ProduceStart;

/* The fields of a Produce v7 after its header, up to the number of partitions. One topic: false for any other number. */
static inline bool take_produce_start(Reader *reader, ProduceStart *start)
{
    int16_t transactional_id_length;
    take_string(reader, &transactional_id_length);
    start->acks = take_int16(reader);
    take_int32(reader); /* the time-out */
    int32_t topics = take_int32(reader);
    start->topic = take_string(reader, &start->topic_length);
    start->partitions = take_int32(reader);
    return !reader->is_short && topics == 1 && start->partitions >= 1;
}

#endif
