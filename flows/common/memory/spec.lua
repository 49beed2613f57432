--!strict
--- What the specification's schema says besides the shape of a file: queries, hooks, days of retention, and kinds of causes
--- and errors. Read from the schema, so that nothing is written twice.

local yaml = require("@nietz/yaml")

local schema = yaml.load("./debug-memory.schema.yaml")

local spec = {}

--- Days until a session goes to the archive.
spec.retention = schema.retention :: { default_days: number, on_escalation: number, on_learning_identified: number }

--- By moment: the names of what is done then, in order.
spec.hooks = schema.hooks :: { [string]: { string } }

--- The names of the queries.
spec.queries = schema.queries :: { [string]: string }

--- The kinds of root causes and of errors.
spec.causes = schema["$defs"].Analysis.properties.root_cause_category.enum :: { string }
spec.error_types = schema["$defs"].Failure.properties.error_type.enum :: { string }

--- The schema of a session: the specification's, with our one key beside its properties.
local whole = table.clone(schema)
whole.properties = table.clone(schema.properties)
whole.properties.nietz = yaml.load("./own.schema.yaml")
spec.session = whole :: { [string]: any }

return spec
