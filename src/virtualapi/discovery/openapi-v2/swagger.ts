// Encodes OpenAPI v2 documents so that paths and definitions can be added to the bytes.
import { Buffer } from 'node:buffer'
import { encodeJson, type JsonObject } from '#apimachinery/meta/index.ts'
import { encodeOpenApiV2 } from './encode-document.ts'

/** The parts of a document that depend on the served resources. */
export interface SwaggerParts {
  readonly paths: Record<string, JsonObject>
  readonly definitions: Record<string, JsonObject>
}

/**
 * An encoded document. `pathsEnd`: the offset of the closing brace of `paths` in the JSON; the closing brace of
 * `definitions` is the last byte but one.
 */
export interface EncodedSwagger {
  readonly json: Buffer
  readonly pathsEnd: number
  readonly protobuf: Buffer
}

/** Encodes a document; `rest`: the members other than paths and definitions. */
export function encodeSwagger(rest: JsonObject, { paths, definitions }: SwaggerParts): EncodedSwagger {
  const upToPaths = Buffer.from(`{${members({ ...rest, paths })}`)
  const json = Buffer.concat([upToPaths, Buffer.from(`,${members({ definitions })}}`)])
  return { json, pathsEnd: upToPaths.length - 1, protobuf: encodeOpenApiV2({ ...rest, paths, definitions }) }
}

/**
 * Adds encoded members of `paths` and `definitions` to the JSON; the JSON must not have any of them already. Neither
 * `paths` nor `definitions` of the document may be empty.
 */
export function extendJson(
  json: Buffer,
  pathsEnd: number,
  { paths, definitions }: { paths: readonly Buffer[]; definitions: readonly Buffer[] },
): Buffer {
  const comma = Buffer.from(',')
  const more = (encoded: readonly Buffer[]): Buffer[] => encoded.flatMap((bytes) => [comma, bytes])
  return Buffer.concat([
    json.subarray(0, pathsEnd),
    ...more(paths),
    json.subarray(pathsEnd, -2),
    ...more(definitions),
    json.subarray(-2),
  ])
}

function members(object: JsonObject): string {
  return encodeJson(object).slice(1, -1)
}
