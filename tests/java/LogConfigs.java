import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints Kafka's topic-level settings, one per line: name, type, default, and the broker properties that set them, each
 * with the factor of its unit. Then, for each line "name TAB value" of the input, whether Kafka takes the value.
 */
public class LogConfigs {
    public static void main(String[] arguments) throws Exception {
        Map<String, ConfigDef.ConfigKey> keys = new TreeMap<>(LogConfig.configKeys());
        for (ConfigDef.ConfigKey key : keys.values()) {
            if (key.internalConfig) {
                continue;
            }
            StringBuilder synonyms = new StringBuilder();
            var known = ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.get(key.name);
            if (known != null) {
                for (var synonym : known) {
                    synonyms.append(synonyms.length() == 0 ? "" : ",");
                    synonyms.append(synonym.name()).append('*').append(synonym.converter().apply("1"));
                }
            }
            System.out.println(String.join("\t", "setting", key.name, key.type.name(),
                    ConfigDef.convertToString(key.defaultValue, key.type), synonyms));
        }
        var input = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t", -1);
            boolean taken = true;
            try {
                ConfigDef.ConfigKey key = keys.get(words[0]);
                Object value = ConfigDef.parseType(words[0], words[1], key.type);
                if (key.validator != null) {
                    key.validator.ensureValid(words[0], value);
                }
            } catch (Exception refused) {
                taken = false;
            }
            System.out.println(String.join("\t", "value", line, Boolean.toString(taken)));
        }
    }
}
