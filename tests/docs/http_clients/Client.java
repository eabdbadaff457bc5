import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import okhttp3.FormBody;
import okhttp3.HttpUrl;
import okhttp3.MediaType;
import okhttp3.MultipartBody;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;

/** The flows of flows.jsonl by OkHttp, as its defaults send them. Usage: Client.java FLOWS URL ADMIN PASSWORD */
class Client {
    private static RequestBody bodyOf(JsonObject step, String method) {
        if (step.has("json")) {
            MediaType json = MediaType.get("application/json; charset=utf-8");
            return RequestBody.create(json, step.get("json").toString());
        }
        JsonObject fields = step.has("form") ? step.getAsJsonObject("form") : new JsonObject();
        if (step.has("file")) {
            JsonObject file = step.getAsJsonObject("file");
            String content = file.get("content").getAsString().repeat(file.has("times") ? file.get("times").getAsInt() : 1);
            RequestBody part = RequestBody.create(null, content.getBytes(StandardCharsets.ISO_8859_1));
            MultipartBody.Builder form = new MultipartBody.Builder().setType(MultipartBody.FORM);
            form.addFormDataPart("file", file.get("name").getAsString(), part);
            fields.entrySet().forEach(field -> form.addFormDataPart(field.getKey(), field.getValue().getAsString()));
            return form.build();
        }
        if (step.has("form")) {
            FormBody.Builder form = new FormBody.Builder();
            fields.entrySet().forEach(field -> form.add(field.getKey(), field.getValue().getAsString()));
            return form.build();
        }
        return method.equals("GET") || method.equals("DELETE") ? null : RequestBody.create(null, new byte[0]);
    }

    /** Whether a value has all of a part, members of members too. */
    private static boolean includes(JsonElement value, JsonElement part) {
        return part.isJsonObject()
            ? part.getAsJsonObject().entrySet().stream().allMatch(member ->
                value.getAsJsonObject().has(member.getKey())
                    && includes(value.getAsJsonObject().get(member.getKey()), member.getValue()))
            : value.equals(part);
    }

    private static void check(boolean isRight, String told) {
        if (!isRight) throw new AssertionError(told);
    }

    public static void main(String[] arguments) throws Exception {
        HttpUrl base = HttpUrl.get(arguments[1] + "/api/v1/");
        OkHttpClient client = new OkHttpClient();
        String name = "u" + UUID.randomUUID().toString().substring(0, 8);
        Map<String, String> known = new HashMap<>(Map.of("name", name, "admin", arguments[2], "password", arguments[3]));
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            Matcher names = Pattern.compile("\\{([a-z]+)\\}").matcher(line);
            JsonObject step = new Gson().fromJson(names.replaceAll(found -> known.get(found.group(1))), JsonObject.class);
            String[] request = step.get("request").getAsString().split(" ");
            HttpUrl.Builder url = base.resolve(request[1]).newBuilder();
            if (step.has("query")) {
                step.getAsJsonObject("query").entrySet()
                    .forEach(one -> url.addQueryParameter(one.getKey(), one.getValue().getAsString()));
            }
            Request.Builder builder = new Request.Builder().url(url.build()).method(request[0], bodyOf(step, request[0]));
            if (step.has("bearer")) builder.header("Authorization", "Bearer " + step.get("bearer").getAsString());
            try (Response answer = client.newCall(builder.build()).execute()) {
                byte[] bytes = answer.body().bytes();
                String text = new String(bytes, StandardCharsets.UTF_8);
                String told = "OkHttp: " + line + ": " + answer.code() + " " + text;
                check(answer.code() == step.get("status").getAsInt(), told);
                check(!step.has("has") || includes(new JsonParser().parse(text), step.get("has")), told);
                check(!step.has("text") || new String(bytes, StandardCharsets.ISO_8859_1)
                    .equals(step.get("text").getAsString()), told);
                if (!step.has("keep")) continue;
                JsonObject body = new JsonParser().parse(text).getAsJsonObject();
                step.getAsJsonObject("keep").entrySet()
                    .forEach(one -> known.put(one.getKey(), body.get(one.getValue().getAsString()).getAsString()));
            }
        }
        client.connectionPool().evictAll();
        client.dispatcher().executorService().shutdown();
    }
}
