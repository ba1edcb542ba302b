// The messages of etcd's API v3 that the store uses, with the field numbers of its published definitions
// (etcdserverpb/rpc.proto, mvccpb/kv.proto). Enums are their numbers.
import { fromJSON } from '@grpc/proto-loader'

export interface KeyValue {
  readonly key: Buffer
  readonly createRevision: number
  readonly modRevision: number
  readonly value: Buffer
}

export interface Header {
  readonly revision: number
}

export interface RangeRequest {
  readonly key: Buffer
  /** End of the range, not included; absent: only the key. */
  readonly rangeEnd?: Buffer
  readonly limit?: number
  /** Absent: the newest state. */
  readonly revision?: number
  readonly keysOnly?: boolean
}

export interface RangeResponse {
  readonly header: Header
  readonly kvs: readonly KeyValue[]
  readonly more: boolean
}

/** What a key must be for a transaction to succeed. */
export interface Compare {
  readonly key: Buffer
  /** 1: the create revision (0: there is no such key), 2: the revision of the last write. */
  readonly target: 1 | 2
  readonly createRevision?: number
  readonly modRevision?: number
}

export interface RequestOp {
  readonly requestRange?: RangeRequest
  readonly requestPut?: { readonly key: Buffer; readonly value: Uint8Array }
  readonly requestDeleteRange?: { readonly key: Buffer }
}

export interface TxnRequest {
  readonly compare: readonly Compare[]
  readonly success: readonly RequestOp[]
  readonly failure: readonly RequestOp[]
}

export interface TxnResponse {
  readonly header: Header
  readonly succeeded: boolean
  readonly responses: readonly { readonly responseRange: RangeResponse | null }[]
}

export interface WatchRequest {
  readonly createRequest?: {
    readonly key: Buffer
    readonly rangeEnd: Buffer
    readonly startRevision: number
    readonly prevKv: boolean
    readonly fragment: boolean
  }
  readonly progressRequest?: object
}

export interface WatchResponse {
  readonly header: Header
  readonly created: boolean
  readonly canceled: boolean
  /** Above 0: the revision asked for is older than what etcd still knows. */
  readonly compactRevision: number
  readonly cancelReason: string
  readonly events: readonly WatchEvent[]
}

export interface WatchEvent {
  /** 0: put, 1: deletion. */
  readonly type: number
  readonly kv: KeyValue
  readonly prevKv: KeyValue | null
}

type Field = readonly [type: string, id: number, rule?: 'repeated']

function message(fields: Readonly<Record<string, Field>>): object {
  const all = Object.entries(fields).map(([name, [type, id, rule]]) => [name, { type, id, ...(rule && { rule }) }])
  return { fields: Object.fromEntries(all) as object }
}

const header: Field = ['ResponseHeader', 1]
const types = {
  ResponseHeader: message({ revision: ['int64', 3] }),
  KeyValue: message({
    key: ['bytes', 1],
    createRevision: ['int64', 2],
    modRevision: ['int64', 3],
    value: ['bytes', 5],
  }),
  RangeRequest: message({
    key: ['bytes', 1],
    rangeEnd: ['bytes', 2],
    limit: ['int64', 3],
    revision: ['int64', 4],
    keysOnly: ['bool', 8],
  }),
  RangeResponse: message({ header, kvs: ['KeyValue', 2, 'repeated'], more: ['bool', 3] }),
  PutRequest: message({ key: ['bytes', 1], value: ['bytes', 2] }),
  DeleteRangeRequest: message({ key: ['bytes', 1] }),
  Compare: message({
    target: ['int32', 2],
    key: ['bytes', 3],
    createRevision: ['int64', 5],
    modRevision: ['int64', 6],
  }),
  RequestOp: message({
    requestRange: ['RangeRequest', 1],
    requestPut: ['PutRequest', 2],
    requestDeleteRange: ['DeleteRangeRequest', 3],
  }),
  ResponseOp: message({ responseRange: ['RangeResponse', 1] }),
  TxnRequest: message({
    compare: ['Compare', 1, 'repeated'],
    success: ['RequestOp', 2, 'repeated'],
    failure: ['RequestOp', 3, 'repeated'],
  }),
  TxnResponse: message({ header, succeeded: ['bool', 2], responses: ['ResponseOp', 3, 'repeated'] }),
  CompactionRequest: message({ revision: ['int64', 1] }),
  CompactionResponse: message({ header }),
  WatchCreateRequest: message({
    key: ['bytes', 1],
    rangeEnd: ['bytes', 2],
    startRevision: ['int64', 3],
    prevKv: ['bool', 6],
    fragment: ['bool', 8],
  }),
  WatchProgressRequest: message({}),
  WatchRequest: message({ createRequest: ['WatchCreateRequest', 1], progressRequest: ['WatchProgressRequest', 3] }),
  Event: message({ type: ['int32', 1], kv: ['KeyValue', 2], prevKv: ['KeyValue', 3] }),
  WatchResponse: message({
    header,
    created: ['bool', 3],
    canceled: ['bool', 4],
    compactRevision: ['int64', 5],
    cancelReason: ['string', 6],
    events: ['Event', 11, 'repeated'],
  }),
  StatusRequest: message({}),
  StatusResponse: message({ header, version: ['string', 2] }),
  AuthenticateRequest: message({ name: ['string', 1], password: ['string', 2] }),
  AuthenticateResponse: message({ header, token: ['string', 2] }),
}

/** Services with their methods: the messages asked with and answered with. */
const services = {
  KV: {
    Range: ['RangeRequest', 'RangeResponse'],
    Txn: ['TxnRequest', 'TxnResponse'],
    Compact: ['CompactionRequest', 'CompactionResponse'],
  },
  Watch: { Watch: ['WatchRequest', 'WatchResponse'] },
  Maintenance: { Status: ['StatusRequest', 'StatusResponse'] },
  Auth: { Authenticate: ['AuthenticateRequest', 'AuthenticateResponse'] },
} as const

export interface Method {
  readonly path: string
  readonly requestSerialize: (message: object) => Buffer
  readonly responseDeserialize: (bytes: Buffer) => object
}

const isStream = (method: string): boolean => method === 'Watch'

function definitions(): Readonly<Record<string, Readonly<Record<string, Method>>>> {
  const asServices = Object.entries(services).map(([service, methods]): readonly [string, object] => {
    const all = Object.entries(methods as Readonly<Record<string, readonly [string, string]>>)
    const described = all.map(([method, [requestType, responseType]]) => [
      method,
      { requestType, responseType, requestStream: isStream(method), responseStream: isStream(method) },
    ])
    return [service, { methods: Object.fromEntries(described) as object }]
  })
  const nested: Record<string, object> = { ...types, ...Object.fromEntries(asServices) }
  const schema: Parameters<typeof fromJSON>[0] = { nested: { etcdserverpb: { nested } } }
  const loaded = fromJSON(schema, { longs: Number, defaults: true, arrays: true })
  return loaded as unknown as Record<string, Record<string, Method>>
}

let loaded: ReturnType<typeof definitions> | undefined

/** A method of a service, such as `KV` and `Txn`. */
export function methodOf(service: keyof typeof services, name: string): Method {
  loaded ??= definitions()
  const method = loaded[`etcdserverpb.${service}`]?.[name]
  if (method === undefined) throw new Error(`etcd has no method ${service}/${name}`)
  return method
}
