// How long it takes to decode, check and write a document: told from its bytes, in a hundredth of that time.
import { defaultMaxJsonDepth, defaultMaxJsonValues, surveyJson } from '../../apimachinery/json/index.ts'

/** Nothing below this is large, whatever it is; bytes. */
export const alwaysLight = 3 * 1024
/** In values: each takes some 2.5 microseconds of decoding, checking and encoding, and so does a KiB of text. */
const maxLightValues = 1500
/** Bytes of YAML, and of protobuf, that cost as much as a value of JSON. */
const yamlBytesPerValue = 2
const protobufBytesPerValue = 16
/** To write YAML takes so many times as long as JSON. */
const yamlWriting = 8
/** Of a document, what is written in another form than it is kept in. An object of the largest size is. */
const mostWritten = { yaml: 100_000, json: 1_000_000 }

/** What it takes to write this JSON, of whatever depth and number of values, in another form: `too much` is seconds. */
export function effortToReformat(body: Uint8Array, format: 'json' | 'yaml'): 'little' | 'much' | 'too much' {
  if (body.length <= alwaysLight) return 'little'
  const { values } = surveyJson(body, Infinity)
  if (values > mostWritten[format]) return 'too much'
  return (values + body.length / 1024) * (format === 'yaml' ? yamlWriting : 1) > maxLightValues ? 'much' : 'little'
}

/** Whether to decode and check this body takes so long that everybody else would notice. `contentType` as sent. */
export function isLargeBody(body: Uint8Array, contentType: string): boolean {
  if (body.length <= alwaysLight) return false
  if (contentType.includes('yaml')) return body.length / yamlBytesPerValue > maxLightValues
  if (contentType.includes('protobuf')) return body.length / protobufBytesPerValue > maxLightValues
  return isLargeJson(body)
}

/** Whether to decode this JSON takes so long that everybody else would notice. */
export function isLargeJson(bytes: Uint8Array): boolean {
  return weightOf(bytes) > maxLightValues
}

/** Of JSON, in values. What is refused for its depth or its number of values is so by counting alone: that is light. */
function weightOf(bytes: Uint8Array): number {
  if (bytes.length <= alwaysLight) return 0
  const { depth, values } = surveyJson(bytes)
  return depth > defaultMaxJsonDepth || values > defaultMaxJsonValues ? 0 : values + bytes.length / 1024
}
