// Converts our generated OpenAPI v3 documents to v2: the same operations, and schemas as far as v2 can express them.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { schemaKeywords } from './encode-document.ts'
import type { SwaggerParts } from './swagger.ts'

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch']

/**
 * Paths and definitions of a document that openapi-operations and openapi-definitions generated. `consumes`: the media
 * types of operations without a body.
 */
export function swaggerFromV3(document: JsonObject, consumes: readonly string[]): SwaggerParts {
  const components = objectOf(document['components'])
  return {
    paths: mapObject(objectOf(document['paths']), (item) => pathItem(objectOf(item), consumes)),
    definitions: mapObject(objectOf(components['schemas']), (item) => schemaFromV3(objectOf(item))),
  }
}

/** A schema with the keywords of v2 only. */
export function schemaFromV3(schema: JsonObject): JsonObject {
  const result: JsonObject = {}
  for (const [word, value] of Object.entries(schema)) {
    if (word === '$ref') result['$ref'] = localReference(value)
    else if (word === 'properties') result['properties'] = mapObject(objectOf(value), (item) => child(item))
    else if (word === 'items' || word === 'additionalProperties') result[word] = child(value)
    else if (word === 'allOf') {
      // In v3, allOf wraps a reference that has a description; in v2, both keywords are side by side.
      const [only] = Array.isArray(value) && value.length === 1 ? value : []
      if (isJsonObject(only) && only['$ref'] !== undefined) result['$ref'] = localReference(only['$ref'])
    } else if (word.startsWith('x-') || schemaKeywords.has(word)) result[word] = value
  }
  // In v2, a value that may be a string or a number has the type string.
  const quantity = Array.isArray(schema['oneOf']) && schema['format'] === undefined
  if (result['type'] === undefined && (result['format'] === 'int-or-string' || quantity)) result['type'] = 'string'
  return result
}

function child(value: JsonValue): JsonValue {
  return isJsonObject(value) ? schemaFromV3(value) : value
}

function pathItem(item: JsonObject, consumes: readonly string[]): JsonObject {
  const result: JsonObject = {}
  for (const method of methods) {
    const operation = item[method]
    if (isJsonObject(operation)) result[method] = operationFromV3(operation, consumes)
  }
  const parameters = item['parameters']
  if (Array.isArray(parameters)) result['parameters'] = parameters.map((entry) => parameter(objectOf(entry)))
  return result
}

function operationFromV3(
  { requestBody, responses, parameters = [], ...rest }: JsonObject,
  consumes: readonly string[],
): JsonObject {
  const body = isJsonObject(requestBody) ? requestBody : undefined
  const content = objectOf(body?.['content'])
  const [first] = Object.values(content)
  const result: JsonObject = { ...rest, schemes: ['https'] }
  result['consumes'] = body === undefined ? [...consumes] : Object.keys(content)
  const answers = objectOf(responses)
  const types = Object.values(answers).flatMap((answer) => Object.keys(objectOf(objectOf(answer)['content'])))
  if (types.length > 0) result['produces'] = [...new Set(types)]
  const list = (Array.isArray(parameters) ? parameters : []).map((entry) => parameter(objectOf(entry)))
  if (body !== undefined)
    list.unshift({
      in: 'body',
      name: 'body',
      ...(body['required'] === true ? { required: true } : {}),
      schema: schemaFromV3(objectOf(objectOf(first)['schema'])),
    })
  if (list.length > 0) result['parameters'] = list
  result['responses'] = mapObject(answers, (answer) => response(objectOf(answer)))
  return result
}

function parameter({ schema, ...rest }: JsonObject): JsonObject {
  return { ...rest, ...objectOf(schema) }
}

function response({ content, ...rest }: JsonObject): JsonObject {
  const [first] = Object.values(objectOf(content))
  const schema = objectOf(first)['schema']
  return isJsonObject(schema) ? { ...rest, schema: schemaFromV3(schema) } : rest
}

function localReference(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value.replace('#/components/schemas/', '#/definitions/') : ''
}

function mapObject(object: JsonObject, change: (value: JsonValue) => JsonValue): Record<string, JsonObject> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, objectOf(change(value))]))
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}
