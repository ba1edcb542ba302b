// The part of one CustomResourceDefinition in OpenAPI v2 documents, encoded. Documents are put together from these bytes, so
// that a change of one definition encodes that one only; logical clusters with an equal definition share its fragment.
import { Buffer } from 'node:buffer'
import { LRUCache } from 'lru-cache'
import { encodeJson, type JsonObject } from '../../../apimachinery/meta/index.ts'
import type { CustomResourceOpenApi } from '../custom-openapi.ts'
import type { OpenApiV2Format } from './built-in.ts'
import { swaggerForCustomResources } from './custom.ts'
import { encodeOpenApiV2 } from './encode-document.ts'

/** The served versions of a CustomResourceDefinition. */
export interface CustomResourceSource {
  /** Cache key: equal for definitions with equal documents. */
  readonly content: string
  /** Decodes the definition. */
  resources(): readonly CustomResourceOpenApi[]
}

/** In JSON: members without braces around them. In protobuf: a document with these paths or this definition only. */
export interface Fragment {
  /** Empty if there are none. */
  readonly paths: Buffer
  /** By name, because fragments may have some in common. */
  readonly definitions: ReadonlyMap<string, Buffer>
}

const fragments = new LRUCache<string, Fragment>({
  max: 10_000,
  maxSize: 64 << 20,
  sizeCalculation: ({ paths, definitions }) =>
    [...definitions.values()].reduce((sum, { length }) => sum + length, paths.length + 1),
})

/** True if the fragment need not be made. */
export function isFragmentKnown({ content }: CustomResourceSource, format: OpenApiV2Format): boolean {
  return fragments.has(`${format} ${content}`)
}

/** The fragment of a definition; `known`: names of definitions that the document has already. */
export function fragmentOf(
  source: CustomResourceSource,
  format: OpenApiV2Format,
  known: ReadonlySet<string>,
): Fragment {
  const key = `${format} ${source.content}`
  let fragment = fragments.get(key)
  if (fragment === undefined) {
    const { paths, definitions } = swaggerForCustomResources(source.resources(), known)
    const encode = format === 'json' ? encodeMembers : encodeMessage
    const encoded = Object.entries(definitions).map(
      ([name, definition]) => [name, encode('definitions', { [name]: definition })] as const,
    )
    fragment = { paths: encode('paths', paths), definitions: new Map(encoded) }
    fragments.set(key, fragment)
  }
  return fragment
}

function encodeMembers(_part: string, members: JsonObject): Buffer {
  return Buffer.from(encodeJson(members).slice(1, -1))
}

function encodeMessage(part: string, members: JsonObject): Buffer {
  return encodeOpenApiV2({ [part]: members })
}
