import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Prints random messages as Kafka's own generated classes serialize them.
 *
 * <p>Usage: {@code java -cp 'JARS/*' MessageSamples.java SEED SAMPLES}; standard input holds the names of generated
 * classes, one a line. Output, tab-separated: {@code message CLASS VERSION HEX JSON} for every sample of every version,
 * and {@code header KEY VERSION REQUEST_HEADER_VERSION RESPONSE_HEADER_VERSION} for every API and version.
 * Which fields a version has is taken from the schemas of the same classes.
 */
public class MessageSamples {
    private static final long[] EXTREMES = {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE, Integer.MIN_VALUE, 127, 128, 32768};
    private static final double[] DOUBLES = {0.0, 1.5, -1e300, Double.MIN_VALUE, Double.MAX_VALUE, 0.1};
    private static final String[] STRINGS = {"", "a", "topic-1", "Grüße", "ключ\u0000", "日本語", "😀 emoji", "\"\\\n\t"};

    private final Random random;

    MessageSamples(long seed) {
        this.random = new Random(seed);
    }

    public static void main(String[] arguments) throws Exception {
        MessageSamples samples = new MessageSamples(Long.parseLong(arguments[0]));
        int count = Integer.parseInt(arguments[1]);
        PrintWriter out = new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8)));
        printHeaderVersions(out);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String name = in.readLine(); name != null; name = in.readLine()) {
            samples.print(Class.forName(name), count, out);
        }
        out.flush();
    }

    private static void printHeaderVersions(PrintWriter out) {
        for (ApiMessageType api : ApiMessageType.values()) {
            for (short v = api.lowestSupportedVersion(); v <= api.highestSupportedVersion(true); v++) {
                out.printf("header\t%d\t%d\t%d\t%d%n", api.apiKey(), v, api.requestHeaderVersion(v), api.responseHeaderVersion(v));
            }
        }
    }

    private void print(Class<?> type, int count, PrintWriter out) throws Exception {
        Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        var toJson = converter.getMethod("write", type, short.class, boolean.class);
        Message prototype = (Message) type.getConstructor().newInstance();
        for (short version = prototype.lowestSupportedVersion(); version <= prototype.highestSupportedVersion(); version++) {
            for (int i = 0; i < count; i++) {
                // The first sample of a version has nothing but defaults.
                Message message = (Message) type.getConstructor().newInstance();
                if (i > 0) {
                    fill(message, schemas[version], 0);
                }
                Object json = toJson.invoke(null, message, version, false);
                out.printf("message\t%s\t%d\t%s\t%s%n", type.getSimpleName(), version, hex(message, version), json);
            }
        }
    }

    private static String hex(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        StringBuilder text = new StringBuilder(buffer.capacity() * 2);
        for (byte each : buffer.array()) {
            text.append(Character.forDigit(each >> 4 & 15, 16)).append(Character.forDigit(each & 15, 16));
        }
        return text.toString();
    }

    private void fill(Object target, Schema schema, int depth) throws Exception {
        Map<String, Field> fields = new HashMap<>();
        for (Field field : target.getClass().getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                fields.put(plain(field.getName()), field);
            }
        }
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                fillTagged(target, (TaggedFields) bound.def.type, fields, depth);
            } else {
                set(target, fields.get(plain(bound.def.name)), bound.def.type, depth);
            }
        }
    }

    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }

    private void fillTagged(Object target, TaggedFields tagged, Map<String, Field> fields, int depth) throws Exception {
        int next = 0;
        for (var entry : definitions(tagged).entrySet()) {
            next = Math.max(next, entry.getKey() + 1);
            if (random.nextBoolean()) {
                set(target, fields.get(plain(entry.getValue().name)), entry.getValue().type, depth);
            }
        }
        if (random.nextInt(4) == 0) {
            List<RawTaggedField> unknown = ((Message) target).unknownTaggedFields();
            int[] steps = {0, 1, 100, 20_000, 3_000_000};
            for (int i = random.nextInt(3); i < steps.length; i += 1 + random.nextInt(3)) {
                unknown.add(new RawTaggedField(next + steps[i], randomBytes()));
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> definitions(TaggedFields tagged) throws Exception {
        Field field = TaggedFields.class.getDeclaredField("fields");
        field.setAccessible(true);
        return (Map<Integer, org.apache.kafka.common.protocol.types.Field>) field.get(tagged);
    }

    private void set(Object target, Field field, Type type, int depth) throws Exception {
        // The schemas of Kafka 3.9 do not mark nullable structs; there a null default gives them away.
        // Nor do they tell records that may be null from those that may not, which are those of a snapshot.
        boolean isSnapshot = field.getName().equals("unalignedRecords");
        boolean nullable = !isSnapshot && type.isNullable() || type instanceof Schema && field.get(target) == null;
        boolean isNull = nullable && random.nextInt(5) == 0;
        field.set(target, isNull ? null : value(field.getGenericType(), field.getType(), type, depth));
    }

    private Object value(java.lang.reflect.Type generic, Class<?> java, Type type, int depth) throws Exception {
        if (java == boolean.class || java == Boolean.class) return random.nextBoolean();
        if (java == byte.class || java == Byte.class) return (byte) randomLong();
        if (java == short.class || java == Short.class) return (short) randomLong();
        if (java == int.class || java == Integer.class) return (int) (type == Type.UINT16 ? randomLong() & 0xffff : randomLong());
        if (java == long.class || java == Long.class) return type == Type.UNSIGNED_INT32 ? randomLong() & 0xffffffffL : randomLong();
        if (java == double.class) return DOUBLES[random.nextInt(DOUBLES.length)];
        if (java == String.class) return randomString();
        if (java == Uuid.class) return random.nextInt(4) == 0 ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
        if (java == byte[].class) return randomBytes();
        if (java == ByteBuffer.class) return ByteBuffer.wrap(randomBytes());
        if (java.getSimpleName().equals("BaseRecords")) return records(java, ByteBuffer.wrap(randomBytes()));
        if (Collection.class.isAssignableFrom(java)) return collection(generic, java, type, depth);
        Object struct = java.getConstructor().newInstance();
        fill(struct, (Schema) type, depth + 1);
        return struct;
    }

    private static Object records(Class<?> baseRecords, ByteBuffer bytes) throws Exception {
        // Kafka 4 moved the class to another package, beside the interface.
        String folder = baseRecords.getPackageName();
        Class<?> memoryRecords;
        try {
            memoryRecords = Class.forName(folder + ".MemoryRecords");
        } catch (ClassNotFoundException e) {
            memoryRecords = Class.forName(folder + ".internal.MemoryRecords");
        }
        return memoryRecords.getMethod("readableRecords", ByteBuffer.class).invoke(null, bytes);
    }

    @SuppressWarnings("unchecked")
    private Object collection(java.lang.reflect.Type generic, Class<?> java, Type type, int depth) throws Exception {
        var holder = (ParameterizedType) (generic instanceof ParameterizedType ? generic : java.getGenericSuperclass());
        Class<?> element = (Class<?>) holder.getActualTypeArguments()[0];
        Collection<Object> made =
            java == List.class ? new ArrayList<>() : (Collection<Object>) java.getConstructor().newInstance();
        Type elementType = type.arrayElementType().get();
        for (int i = length(elementType instanceof Schema, depth); i > 0; i--) {
            made.add(value(element, element, elementType, depth));
        }
        return made;
    }

    private int length(boolean ofStructs, int depth) {
        if (random.nextInt(40) == 0 && (!ofStructs || depth == 0)) {
            return 126 + random.nextInt(4);
        }
        return random.nextInt(ofStructs ? 3 : 5);
    }

    private long randomLong() {
        return random.nextBoolean() ? EXTREMES[random.nextInt(EXTREMES.length)] : random.nextLong();
    }

    private String randomString() {
        if (random.nextInt(20) == 0) {
            return "ö".repeat(60 + random.nextInt(80));
        }
        return STRINGS[random.nextInt(STRINGS.length)];
    }

    private byte[] randomBytes() {
        byte[] bytes = new byte[random.nextInt(20) == 0 ? 120 + random.nextInt(20) : random.nextInt(5)];
        random.nextBytes(bytes);
        return bytes;
    }
}
