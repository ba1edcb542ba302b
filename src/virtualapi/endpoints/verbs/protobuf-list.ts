// A list of built-in objects, or of the metadata of any objects, as protobuf. All items are encoded before the first
// byte is sent, because the list begins with its length; other logical clusters have their turns between slices.
import { apiVersionOf, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import type { ListMeta } from '#virtualapi/codec/list-chunks.ts'
import { encodeListItem, protobufListFrame } from '#virtualapi/codec/protobuf/index.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ChunkedResponse } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'

/** How many bytes of JSON are encoded in one turn, which takes some 2 ms. */
const sliceBytes = 128 * 1024

/** The list of these objects in the requested version. */
export async function protobufList(
  { definition, exchange, target, representation }: EndpointCall,
  entries: readonly Pick<Entry, 'bytes'>[],
  metadata: ListMeta,
): Promise<ChunkedResponse> {
  const { as } = representation
  const isWhole = as === 'Object'
  const kind = isWhole ? definition.info.kind : as
  const apiVersion = isWhole ? apiVersionOf(definition.info) : `meta.k8s.io/${representation.version ?? 'v1'}`
  const view = viewOf(definition, { ...representation, format: 'json' }, { now: target.context.now })
  const items: Buffer[] = []
  let itemBytes = 0
  let taken = 0
  for (const { bytes } of entries) {
    const item = encodeListItem(decodeObject(view.object(bytes)) as unknown as JsonObject, { apiVersion, kind })
    items.push(item)
    itemBytes += item.length
    taken += bytes.length
    if (taken < sliceBytes) continue
    taken = 0
    await exchange.turn()
  }
  const frame = { apiVersion, kind: `${kind}List`, metadata: metadata as JsonValue }
  const { before, after } = protobufListFrame(frame, itemBytes)
  const bytes = before.length + itemBytes + after.length
  return {
    kind: 'chunks',
    status: 200,
    headers: { 'content-type': 'application/vnd.kubernetes.protobuf' },
    chunks: { bytes, [Symbol.iterator]: () => slices([before, ...items, after]) },
    about: bytes,
    held: bytes,
  }
}

function* slices(parts: readonly Buffer[]): Generator<Uint8Array> {
  let slice: Buffer[] = []
  let bytes = 0
  for (const part of parts) {
    slice.push(part)
    bytes += part.length
    if (bytes < sliceBytes) continue
    yield Buffer.concat(slice)
    slice = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(slice)
}
