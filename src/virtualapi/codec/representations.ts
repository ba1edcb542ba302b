// Views of objects in the form that the client wants: whole objects, rows of a Table, or PartialObjectMetadata.
import { Buffer } from 'node:buffer'
import { apiVersionOf, encodeJson, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { defaultValuesOf } from '#virtualapi/kinds/resources/default-values.ts'
import { decodeMetadata, decodeObject, headOf, layOut, replaceHead } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { Chunks } from '#virtualapi/request/exchange.ts'
import { unchanged, listChunks, textChunks, type ListMeta } from './list-chunks.ts'
import type { ListItem } from './list-segments.ts'
import { encodeProtobuf } from './protobuf/index.ts'
import { tableColumns, tableRow } from './table/index.ts'
import type { Representation } from './negotiate.ts'

export interface ObjectView {
  /** The body of a response with one object. */
  object(bytes: Uint8Array): Uint8Array
  /** The body of a response with a list of objects, encoded in chunks as they are consumed. */
  list(items: readonly ListItem[], metadata: ListMeta): Chunks
  /**
   * The object of a watch event. `first`: true for the first object of the stream, which has the columns of a Table.
   */
  event(bytes: Uint8Array, first: boolean): Uint8Array
  /** The object of a bookmark (kind, apiVersion and metadata only), in the form of the other events. */
  bookmark(object: KubeObject, first: boolean): Uint8Array
  /** True if `event` returns the same bytes for every watcher, so that they can be encoded once. */
  readonly shared: boolean
  /** True if `event` returns the bytes as they are stored. */
  readonly isStored?: boolean
  /**
   * True if `event` and `bookmark` return protobuf. `object` and `list` return JSON, which is encoded as protobuf
   * later.
   */
  readonly isProtobuf?: boolean
  /** True if an object may be slow to encode, however small it is. */
  readonly isCostly?: boolean
}

/** The number of values in defaults above which reading an object is slow that was stored without them. */
const manyDefaults = 50
/** The number of columns above which encoding a row is slow. No built-in kind has so many. */
const manyColumns = 20

/** Views of whole objects, shared by all requests. */
const wholeViews = new WeakMap<ResourceDefinition, ObjectView>()
const protobufViews = new WeakMap<ResourceDefinition, ObjectView>()

/** The view of a resource's objects in this representation. Throws 400 for an invalid `includeObject` of a Table. */
export function viewOf(
  definition: ResourceDefinition,
  { as, version: formVersion, format }: Representation,
  { includeObject = 'Metadata', now }: { includeObject?: string; now: number },
): ObjectView {
  const form = `meta.k8s.io/${formVersion ?? 'v1'}`
  if (as === 'Table')
    return tableView(definition, converter(definition), { includeObject: includedObject(includeObject), now, form })
  if (as === 'PartialObjectMetadata') {
    const view = metadataView(converter(definition), form)
    return format === 'protobuf' ? inProtobuf(view) : view
  }
  let view = wholeViews.get(definition)
  if (view === undefined) wholeViews.set(definition, (view = costly(definition, wholeView(definition))))
  return format === 'protobuf' ? protobufView(definition, view) : view
}

/** The same view, marked as costly if defaults can make large objects of small ones. */
function costly(definition: ResourceDefinition, view: ObjectView): ObjectView {
  if (!growsOnRead(definition)) return view
  const list: ObjectView['list'] = (items, metadata) => {
    const chunks = view.list(items, metadata)
    return { [Symbol.iterator]: () => chunks[Symbol.iterator](), isCostly: true }
  }
  return { ...view, list, isCostly: true }
}

function growsOnRead({ complete, schema }: ResourceDefinition): boolean {
  if (complete === undefined || schema === undefined) return false
  const { toObject, toItem } = defaultValuesOf(schema)
  return toObject + toItem > manyDefaults
}

function protobufView(definition: ResourceDefinition, whole: ObjectView): ObjectView {
  let view = protobufViews.get(definition)
  if (view === undefined) {
    view = inProtobuf(whole)
    protobufViews.set(definition, view)
  }
  return view
}

/** The same view with its events as protobuf. */
function inProtobuf(view: ObjectView): ObjectView {
  const reencoded = (json: Uint8Array): Uint8Array => encoded(decodeObject(json))
  return {
    ...view,
    event: (bytes) => reencoded(view.event(bytes, false)),
    bookmark: (object) => reencoded(view.bookmark(object, false)),
    isStored: false,
    isProtobuf: true,
  }
}

function encoded(object: KubeObject): Uint8Array {
  const bytes = encodeProtobuf(object as unknown as JsonObject)
  if (bytes === undefined) throw new Error(`kind "${object.kind}" has no protobuf form`)
  return bytes
}

function wholeView(definition: ResourceDefinition): ObjectView {
  const convert = converter(definition)
  const { group, version, kind } = definition.info
  const apiVersion = apiVersionOf({ group, version })
  return {
    object: convert,
    // As upstream, lists of custom resources have `continue` even if it is empty.
    list: (items, metadata) =>
      definition.info.builtIn
        ? listChunks({ kind: `${kind}List`, apiVersion, metadata }, items, '', convert)
        : listChunks(
            { kind: `${kind}List`, apiVersion, metadata: { continue: '', ...metadata } },
            items,
            undefined,
            convert,
          ),
    event: convert,
    bookmark: (object) => Buffer.from(encodeJson(object)),
    shared: true,
    isStored: convert === unchanged,
  }
}

/** The function that makes the bytes to send of stored bytes. */
function converter(definition: ResourceDefinition): (bytes: Uint8Array) => Uint8Array {
  const { shown } = definition
  const convert = versionConverter(definition)
  return shown === undefined ? convert : (bytes) => shown(convert(bytes))
}

/** The function that converts stored bytes to the requested version. */
function versionConverter(definition: ResourceDefinition): (bytes: Uint8Array) => Uint8Array {
  const { info, storageApiVersion, fromStorage, complete } = definition
  if (fromStorage !== undefined) return (bytes) => Buffer.from(layOut(fromStorage(decodeObject(bytes))))
  const apiVersion = apiVersionOf(info)
  if (apiVersion === storageApiVersion) return complete ?? unchanged
  const head = headOf(info.kind, apiVersion)
  return (bytes) => replaceHead(complete?.(bytes) ?? bytes, head)
}

type IncludedObject = 'Metadata' | 'Object' | 'None'

/** Validates `includeObject`. Throws 400. */
function includedObject(text: string): IncludedObject {
  const known = (['Metadata', 'Object', 'None'] as const).find((word) => word === (text || 'Metadata'))
  if (known !== undefined) return known
  const words = "must be 'Metadata', 'Object', 'None', or empty"
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(text)}: ${words}`,
  )
}

function metadataView(convert: (bytes: Uint8Array) => Uint8Array, form: string): ObjectView {
  const one = (bytes: Uint8Array): Uint8Array =>
    Buffer.from(encodeJson(partial({ metadata: decodeMetadata(convert(bytes)) }, form)))
  return {
    object: one,
    list: (items, metadata) =>
      textChunks({ kind: 'PartialObjectMetadataList', apiVersion: form, metadata }, 'items', items, ({ bytes }) =>
        encodeJson(partial({ metadata: decodeMetadata(convert(bytes)) }, form)),
      ),
    event: one,
    bookmark: (object) => Buffer.from(encodeJson(partial(object, form))),
    shared: false,
  }
}

function partial({ metadata }: Pick<KubeObject, 'metadata'>, apiVersion: string): unknown {
  return { kind: 'PartialObjectMetadata', apiVersion, metadata }
}

function tableView(
  definition: ResourceDefinition,
  convert: (bytes: Uint8Array) => Uint8Array,
  { includeObject, now, form }: { includeObject: IncludedObject; now: number; form: string },
): ObjectView {
  const { info, custom } = definition
  const columnDefinitions = tableColumns(info, custom?.columns)
  const isCostly = columnDefinitions.length > manyColumns || growsOnRead(definition)
  const rowOf = (object: KubeObject): unknown => {
    const shown = includeObject === 'None' ? null : includeObject === 'Object' ? object : partial(object, form)
    return { ...tableRow(info, object, now, custom?.columns), object: shown }
  }
  const row = (bytes: Uint8Array): unknown => rowOf(decodeObject(convert(bytes)))
  const table = (rows: unknown[], metadata: unknown, withColumns = true): Uint8Array =>
    Buffer.from(
      encodeJson({
        kind: 'Table',
        apiVersion: form,
        metadata,
        columnDefinitions: withColumns ? columnDefinitions : null,
        rows,
      }),
    )
  return {
    object: (bytes) => table([row(bytes)], { resourceVersion: decodeMetadata(bytes).resourceVersion }),
    list: (items, metadata) => ({
      [Symbol.iterator]: () =>
        textChunks({ kind: 'Table', apiVersion: form, metadata, columnDefinitions }, 'rows', items, ({ bytes }) =>
          encodeJson(row(bytes)),
        ),
      isCostly,
    }),
    event: (bytes, first) => table([row(bytes)], { resourceVersion: decodeMetadata(bytes).resourceVersion }, first),
    bookmark: (object, first) => table([rowOf(object)], { resourceVersion: object.metadata.resourceVersion }, first),
    shared: false,
    isCostly,
  }
}
