// OpenAPI v2 documents as values and as bytes that more paths and definitions can be put into.
import { Buffer } from 'node:buffer'
import { encodeJson, type JsonObject } from '../../../apimachinery/meta/index.ts'
import { encodeOpenApiV2 } from './encode-document.ts'

/** The parts of a document that grow with what is served. */
export interface SwaggerParts {
  readonly paths: Record<string, JsonObject>
  readonly definitions: Record<string, JsonObject>
}

/** A document as bytes. `pathsEnd`: where in the JSON the closing brace of `paths` stands; that of `definitions` is last but one. */
export interface EncodedSwagger {
  readonly json: Buffer
  readonly pathsEnd: number
  readonly protobuf: Buffer
}

/** Encodes a document; `rest` is all but paths and definitions. */
export function encodeSwagger(rest: JsonObject, { paths, definitions }: SwaggerParts): EncodedSwagger {
  const upToPaths = Buffer.from(`{${members({ ...rest, paths })}`)
  const json = Buffer.concat([upToPaths, Buffer.from(`,${members({ definitions })}}`)])
  return { json, pathsEnd: upToPaths.length - 1, protobuf: encodeOpenApiV2({ ...rest, paths, definitions }) }
}

/** The JSON with more paths and definitions, none of which it has yet. Neither object of the document may be empty. */
export function extendJson(json: Buffer, pathsEnd: number, { paths, definitions }: SwaggerParts): Buffer {
  const more = (object: JsonObject): Buffer =>
    Buffer.from(Object.keys(object).length === 0 ? '' : `,${members(object)}`)
  return Buffer.concat([
    json.subarray(0, pathsEnd),
    more(paths),
    json.subarray(pathsEnd, -2),
    more(definitions),
    json.subarray(-2),
  ])
}

function members(object: JsonObject): string {
  return encodeJson(object).slice(1, -1)
}
