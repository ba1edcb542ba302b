// The part of one CustomResourceDefinition, or of one aggregated group version, in OpenAPI v2 documents, encoded.
// Documents are put together from these bytes, so that after a change of one definition only that definition is encoded
// again. Logical clusters with an equal definition share its fragment.
import { Buffer } from 'node:buffer'
import { setImmediate as nextPass } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { encodeJson, type JsonObject } from '#apimachinery/meta/index.ts'
import type { CustomResourceOpenApi } from '#virtualapi/discovery/custom-openapi.ts'
import type { OpenApiV2Format } from './built-in.ts'
import { swaggerForCustomResources } from './custom.ts'
import { encodeOpenApiV2 } from './encode-document.ts'
import type { SwaggerParts } from './swagger.ts'

/** An addition to the document of the built-in kinds. */
export interface SwaggerSource {
  /** The cache key: equal for sources with equal parts. */
  readonly content: string
  /**
   * The parts of the source. `known`: names of definitions that the document has already. Yields undefined where other
   * work may run; other work may also run after each part.
   */
  parts(known: ReadonlySet<string>): Iterable<SwaggerParts | undefined>
}

/** The served versions of a CustomResourceDefinition. `resources` decodes the definition. */
export function customResourceSource(
  content: string,
  resources: () => readonly CustomResourceOpenApi[],
): SwaggerSource {
  return { content, parts: (known) => swaggerForCustomResources(resources(), known) }
}

/**
 * Encoded parts. In JSON: members without the braces around them. In protobuf: documents with only these paths or this
 * definition.
 */
export interface Fragment {
  /** The encoded paths; empty if there are none. */
  readonly paths: Buffer
  /** The encoded definitions by name, because fragments may have some in common. */
  readonly definitions: ReadonlyMap<string, Buffer>
}

const fragments = new LRUCache<string, Fragment>({
  max: 10_000,
  maxSize: 64 << 20,
  sizeCalculation: ({ paths, definitions }) =>
    [...definitions.values()].reduce((sum, { length }) => sum + length, paths.length + 1),
})

/**
 * The fragment of a source. `known`: names of definitions that the document has already. Other work runs between its
 * parts.
 */
export async function fragmentOf(
  source: SwaggerSource,
  format: OpenApiV2Format,
  known: ReadonlySet<string>,
): Promise<Fragment> {
  const key = `${format} ${source.content}`
  const there = fragments.get(key)
  if (there !== undefined) return there
  const fragment = await makeFragment(source, format, known)
  fragments.set(key, fragment)
  return fragment
}

async function makeFragment(
  source: SwaggerSource,
  format: OpenApiV2Format,
  known: ReadonlySet<string>,
): Promise<Fragment> {
  const encode = format === 'json' ? encodeMembers : encodeMessage
  const paths: Buffer[] = []
  const definitions = new Map<string, Buffer>()
  await nextPass()
  for (const parts of source.parts(known)) {
    await nextPass()
    if (parts === undefined) continue
    if (Object.keys(parts.paths).length > 0) paths.push(encode('paths', parts.paths))
    for (const [name, definition] of Object.entries(parts.definitions))
      definitions.set(name, encode('definitions', { [name]: definition }))
  }
  return { paths: joined(paths, format), definitions }
}

/** Concatenated protobuf messages are merged; members of JSON have commas between them. */
function joined(parts: readonly Buffer[], format: OpenApiV2Format): Buffer {
  if (format === 'protobuf') return Buffer.concat(parts)
  const comma = Buffer.from(',')
  return Buffer.concat(
    parts.filter(({ length }) => length > 0).flatMap((part, i) => (i === 0 ? [part] : [comma, part])),
  )
}

function encodeMembers(_part: string, members: JsonObject): Buffer {
  return Buffer.from(encodeJson(members).slice(1, -1))
}

function encodeMessage(part: string, members: JsonObject): Buffer {
  return encodeOpenApiV2({ [part]: members })
}
