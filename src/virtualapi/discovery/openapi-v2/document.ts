// The OpenAPI v2 document of a logical cluster: the built-in one with the paths and definitions of its custom resources
// and of other API servers. It is cached by content, so that thousands of logical clusters with equal
// CustomResourceDefinitions share it.
import { Buffer } from 'node:buffer'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { contentHash } from '#virtualapi/discovery/discovery-document.ts'
import { builtInSwagger, type OpenApiV2Format } from './built-in.ts'
import { fragmentOf, type Fragment, type SwaggerSource } from './fragment.ts'
import { extendJson } from './swagger.ts'

const deflate = promisify(gzip)
const inflate = promisify(gunzip)

/** The kinds that a logical cluster serves besides the built-in ones. */
export interface SwaggerSources {
  /** The cache key: equal for sets with equal documents. Empty if there are no sources. */
  readonly content: string
  readonly sources: readonly SwaggerSource[]
}

interface ComposeOptions {
  readonly format: OpenApiV2Format
  readonly custom: SwaggerSources
}

const zipped = new LRUCache<string, Buffer, ComposeOptions>({
  max: 500,
  maxSize: 64 << 20,
  sizeCalculation: ({ length }) => length,
  fetchMethod: (_key, _stale, { context }) => compose(context),
})

/**
 * The hash for the ETag. It is the same for both formats, which is allowed because of `Vary: Accept`. Does not generate
 * the document.
 */
export function openApiV2Hash({ content }: SwaggerSources): string {
  const { hash } = builtInSwagger()
  return content === '' ? hash : contentHash(`${hash} ${content}`)
}

/** The document as bytes. */
export async function openApiV2Body(
  custom: SwaggerSources,
  { format, gzipped }: { format: OpenApiV2Format; gzipped: boolean },
): Promise<Buffer> {
  const bytes = await zippedBody(custom, format)
  return gzipped ? bytes : inflate(bytes)
}

async function zippedBody(custom: SwaggerSources, format: OpenApiV2Format): Promise<Buffer> {
  if (custom.content === '') return builtInSwagger().gzip(format)
  const context: ComposeOptions = { format, custom }
  return (await zipped.fetch(`${format} ${custom.content}`, { context })) ?? compose(context)
}

async function compose({ format, custom }: ComposeOptions): Promise<Buffer> {
  const builtIn = builtInSwagger()
  const whole = await inflate(builtIn.gzip(format))
  const fragments = await fragmentsOf(custom, format, new Set(builtIn.definitions))
  const paths = fragments.flatMap(({ paths: own }) => (own.length === 0 ? [] : [own]))
  const definitions = [...new Map(fragments.flatMap((fragment) => [...fragment.definitions])).values()]
  if (format === 'json') return deflate(extendJson(whole, builtIn.pathsEnd, { paths, definitions }))
  // Concatenated protobuf messages are merged.
  return deflate(Buffer.concat([whole, ...paths, ...definitions]))
}

/** The fragments of all definitions. */
async function fragmentsOf(
  { sources }: SwaggerSources,
  format: OpenApiV2Format,
  known: ReadonlySet<string>,
): Promise<readonly Fragment[]> {
  const fragments: Fragment[] = []
  for (const source of sources) {
    fragments.push(await fragmentOf(source, format, known))
  }
  return fragments
}
