import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.StringJoiner;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/**
 * Writes and reads record batches with Kafka's own classes.
 *
 * <p>{@code java -cp 'JARS/*' RecordBatches.java SEED COUNT} prints COUNT lines of random batches: their bytes in hex, a
 * tab, and what Kafka reads in them as JSON. Without arguments, lines of hex are read from standard input and each is
 * answered by that JSON, or by {@code error: ...}. Keys, values and bytes are in hex there, null is null.
 */
public class RecordBatches {
    private static final HexFormat HEX = HexFormat.of();
    private static final long[] TIMESTAMPS = {0, -1, 1, 1_732_000_000_000L, Long.MAX_VALUE - 1_000_000_000L};
    private static final String[] STRINGS = {"", "a", "trace-id", "Grüße", "ключ\u0000", "日本語", "😀 emoji", "\"\\\n\t"};

    private final Random random;

    RecordBatches(long seed) {
        this.random = new Random(seed);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
        if (arguments.length == 0) {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(describe(HEX.parseHex(line)));
            }
        } else {
            RecordBatches generator = new RecordBatches(Long.parseLong(arguments[0]));
            for (int i = 0; i < Integer.parseInt(arguments[1]); i++) {
                byte[] bytes = generator.next(i);
                out.println(HEX.formatHex(bytes) + "\t" + describe(bytes));
            }
        }
        out.flush();
    }

    private byte[] next(int index) {
        switch (index % 8) {
            case 0: return bytes(endTransactionMarker());
            case 1: return bytes(quorumControlBatch(index / 8 % 5));
            case 2: return filtered(data(false));
            case 3: return bytes(data(true));
            default: return bytes(data(false));
        }
    }

    private MemoryRecords data(boolean large) {
        CompressionType[] codecs = CompressionType.values();
        Compression compression = compression(codecs[random.nextInt(codecs.length)]);
        boolean appendTime = random.nextInt(3) == 0;
        boolean idempotent = random.nextBoolean();
        long baseOffset = random.nextInt(3) == 0 ? 0 : random.nextLong() >>> (2 + random.nextInt(60));
        long timestamp = TIMESTAMPS[random.nextInt(TIMESTAMPS.length)];
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024),
            RecordBatch.MAGIC_VALUE_V2,
            compression,
            appendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            baseOffset,
            appendTime ? 1_732_000_000_000L + random.nextInt() : RecordBatch.NO_TIMESTAMP,
            idempotent ? random.nextLong() >>> 1 : RecordBatch.NO_PRODUCER_ID,
            idempotent ? (short) random.nextInt(Short.MAX_VALUE) : RecordBatch.NO_PRODUCER_EPOCH,
            idempotent ? Integer.MAX_VALUE - random.nextInt(random.nextBoolean() ? 5 : Integer.MAX_VALUE) : RecordBatch.NO_SEQUENCE,
            idempotent && random.nextBoolean(),
            random.nextInt(4) == 0 ? RecordBatch.NO_PARTITION_LEADER_EPOCH : random.nextInt(Integer.MAX_VALUE));
        long offset = baseOffset;
        int count = large ? 200 + random.nextInt(300) : 1 + random.nextInt(8);
        for (int i = 0; i < count; i++) {
            long delta = random.nextInt(4) == 0 ? random.nextInt(1_000_000_000) : random.nextInt(20);
            long time = timestamp == -1 ? -1 : random.nextInt(3) == 0 ? Math.max(0, timestamp - delta) : timestamp + delta;
            builder.appendWithOffset(offset, time, blob(large), blob(large), headers());
            offset += random.nextInt(3) == 0 ? 1 + random.nextInt(100_000) : 1;
        }
        return builder.build();
    }

    private Compression compression(CompressionType type) {
        boolean byDefault = random.nextBoolean();
        switch (type) {
            case GZIP: return byDefault ? Compression.gzip().build() : Compression.gzip().level(1 + random.nextInt(9)).build();
            case LZ4: return byDefault ? Compression.lz4().build() : Compression.lz4().level(1 + random.nextInt(17)).build();
            case ZSTD: return byDefault ? Compression.zstd().build() : Compression.zstd().level(random.nextInt(12) - 3).build();
            default: return Compression.of(type).build();
        }
    }

    /** What compaction leaves of some batches: gaps, a delete horizon, and batches without records. */
    private byte[] filtered(MemoryRecords records) {
        boolean keepNothing = random.nextBoolean();
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(1_732_000_000_000L, random.nextInt(1_000_000)) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return !keepNothing && random.nextBoolean();
            }
        };
        ByteBuffer output = records.filterTo(filter, ByteBuffer.allocate(16), BufferSupplier.NO_CACHING, Integer.MAX_VALUE).outputBuffer();
        output.flip();
        return array(output);
    }

    private MemoryRecords endTransactionMarker() {
        ControlRecordType type = random.nextBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        return MemoryRecords.withEndTransactionMarker(
            random.nextLong() >>> 1, 1_732_000_000_000L, random.nextInt(100), random.nextLong() >>> 1,
            (short) random.nextInt(Short.MAX_VALUE), new EndTransactionMarker(type, random.nextInt(Integer.MAX_VALUE)));
    }

    private MemoryRecords quorumControlBatch(int kind) {
        ByteBuffer buffer = ByteBuffer.allocate(1024);
        long time = 1_732_000_000_000L;
        switch (kind) {
            case 0:
                return MemoryRecords.withLeaderChangeMessage(7, time, 3, buffer, new LeaderChangeMessage().setLeaderId(random.nextInt())
                    .setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1), new LeaderChangeMessage.Voter().setVoterId(2))));
            case 1:
                return MemoryRecords.withSnapshotHeaderRecord(7, time, 3, buffer,
                    new SnapshotHeaderRecord().setLastContainedLogTimestamp(random.nextLong()));
            case 2:
                return MemoryRecords.withSnapshotFooterRecord(7, time, 3, buffer, new SnapshotFooterRecord());
            case 3:
                return MemoryRecords.withKRaftVersionRecord(7, time, 3, buffer, new KRaftVersionRecord().setKRaftVersion((short) 1));
            default:
                VotersRecord.Voter voter = new VotersRecord.Voter().setVoterId(4).setVoterDirectoryId(new Uuid(random.nextLong(), 1));
                voter.endpoints().add(new VotersRecord.Endpoint().setName("CONTROLLER").setHost("bücher.example").setPort(65535));
                voter.kRaftVersionFeature().setMaxSupportedVersion((short) 1);
                return MemoryRecords.withVotersRecord(7, time, 3, buffer, new VotersRecord().setVoters(List.of(voter)));
        }
    }

    private byte[] blob(boolean large) {
        if (random.nextInt(5) == 0) return null;
        int size = random.nextInt(3) == 0 ? random.nextInt(4) : random.nextInt(large ? 2000 : 100);
        byte[] data = new byte[size];
        if (random.nextBoolean()) random.nextBytes(data);
        return data;
    }

    private Header[] headers() {
        Header[] headers = new Header[Math.max(0, random.nextInt(6) - 2)];
        for (int i = 0; i < headers.length; i++) {
            headers[i] = new RecordHeader(STRINGS[random.nextInt(STRINGS.length)], blob(false));
        }
        return headers;
    }

    private static byte[] bytes(MemoryRecords records) {
        return array(records.buffer());
    }

    private static byte[] array(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    private static String describe(byte[] bytes) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
        StringJoiner batches = new StringJoiner(", ", "[", "]");
        try {
            int size = 0;
            for (MutableRecordBatch batch : records.batches()) {
                batch.ensureValid();
                batches.add(describe(batch));
                size += batch.sizeInBytes();
            }
            if (size != bytes.length) return "error: " + size + " of " + bytes.length + " bytes are batches";
        } catch (RuntimeException error) {
            return "error: " + error;
        }
        return batches.toString();
    }

    private static String describe(RecordBatch batch) {
        StringJoiner records = new StringJoiner(", ", "[", "]");
        for (Record record : batch) {
            StringJoiner headers = new StringJoiner(", ", "[", "]");
            for (Header header : record.headers()) {
                headers.add("[" + hex(header.key().getBytes(StandardCharsets.UTF_8)) + ", " + hex(header.value()) + "]");
            }
            records.add(String.format(
                "{\"offset\": %d, \"timestamp\": %d, \"key\": %s, \"value\": %s, \"headers\": %s, \"control\": %s}",
                record.offset(), record.timestamp(), hex(record.key()), hex(record.value()), headers,
                batch.isControlBatch() ? control(record) : "null"));
        }
        return String.format(
            "{\"base_offset\": %d, \"last_offset\": %d, \"next_offset\": %d, \"size\": %d, \"partition_leader_epoch\": %d, "
                + "\"magic\": %d, \"crc\": %d, \"compression\": %d, \"timestamp_type\": %d, \"is_transactional\": %b, "
                + "\"is_control\": %b, \"delete_horizon_ms\": %s, \"max_timestamp\": %d, \"producer_id\": %d, "
                + "\"producer_epoch\": %d, \"base_sequence\": %d, \"last_sequence\": %d, \"record_count\": %d, \"records\": %s}",
            batch.baseOffset(), batch.lastOffset(), batch.nextOffset(), batch.sizeInBytes(), batch.partitionLeaderEpoch(),
            batch.magic(), batch.checksum(), batch.compressionType().id, batch.timestampType().id, batch.isTransactional(),
            batch.isControlBatch(), batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : "null",
            batch.maxTimestamp(), batch.producerId(), batch.producerEpoch(), batch.baseSequence(), batch.lastSequence(),
            batch.countOrNull(), records);
    }

    private static String control(Record record) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        return String.format("{\"type\": \"%s\", \"value\": %s}", type, controlValue(type, record));
    }

    private static Object controlValue(ControlRecordType type, Record record) {
        short version = 0;
        switch (type) {
            case ABORT:
            case COMMIT:
                return EndTransactionMarker.deserialize(record).coordinatorEpoch();
            case LEADER_CHANGE:
                return LeaderChangeMessageJsonConverter.write(ControlRecordUtils.deserializeLeaderChangeMessage(record), version);
            case SNAPSHOT_HEADER:
                return SnapshotHeaderRecordJsonConverter.write(ControlRecordUtils.deserializeSnapshotHeaderRecord(record), version);
            case SNAPSHOT_FOOTER:
                return SnapshotFooterRecordJsonConverter.write(ControlRecordUtils.deserializeSnapshotFooterRecord(record), version);
            case KRAFT_VERSION:
                return KRaftVersionRecordJsonConverter.write(ControlRecordUtils.deserializeKRaftVersionRecord(record), version);
            case KRAFT_VOTERS:
                return VotersRecordJsonConverter.write(ControlRecordUtils.deserializeVotersRecord(record), version);
            default:
                return "null";
        }
    }

    private static String hex(ByteBuffer buffer) {
        return buffer == null ? "null" : hex(array(buffer));
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : '"' + HEX.formatHex(bytes) + '"';
    }
}
