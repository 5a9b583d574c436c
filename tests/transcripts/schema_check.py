"""Holds the messages of a server to the published schema of the revision that was negotiated."""
import json
from pathlib import Path

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = Path(__file__).parent.parent / "data" / "mcp-schema"
RESULTS = {"initialize": "InitializeResult", "ping": "EmptyResult", "tools/list": "ListToolsResult",
           "tools/call": "CallToolResult", "resources/list": "ListResourcesResult",
           "resources/read": "ReadResourceResult", "resources/templates/list": "ListResourceTemplatesResult"}


class SchemaCheck:
    """Raises jsonschema.ValidationError where a message is not what its schema says."""

    def __init__(self):
        self.revision, self.methods, self.outputs = "2025-11-25", {}, {}

    def sent(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            return
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict) and isinstance(one.get("id"), (str, int)) and "method" in one:
                self.methods[one["id"]] = (one["method"], one.get("params"))

    def check(self, name, value):
        schema = json.loads((SCHEMAS / self.revision / "schema.json").read_text())
        where = "$defs" if "$defs" in schema else "definitions"
        root = {"$schema": schema["$schema"], where: schema[where], "$ref": f"#/{where}/{name}"}
        jsonschema.validators.validator_for(root)(root).validate(value)

    def received(self, message):
        if isinstance(message, list):
            return [self.received(one) for one in message]
        method, params = self.methods.get(message.get("id"), (None, None))
        if "method" in message:
            return self.check("ProgressNotification", message)
        if "error" in message:
            if message.get("id", 0) is None and self.revision != "2025-11-25":
                message = {**message, "id": 0}  # JSON-RPC wants null there, which the schemas do not know
            return self.check("JSONRPCErrorResponse" if self.revision == "2025-11-25" else "JSONRPCError", message)
        result = message["result"]
        if method == "initialize":
            self.revision = result["protocolVersion"]
        self.check(RESULTS[method], result)
        for tool in result.get("tools", []) if method == "tools/list" else []:
            for schema in (tool["inputSchema"], tool.get("outputSchema", {})):
                jsonschema.Draft202012Validator.check_schema(schema)
            self.outputs[tool["name"]] = tool.get("outputSchema", {})
        if "structuredContent" in result:
            jsonschema.Draft202012Validator(self.outputs.get(params["name"], {})).validate(result["structuredContent"])
