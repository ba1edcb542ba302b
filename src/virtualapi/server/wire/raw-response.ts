// Node's response objects of both protocols.
import type { ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'

/** A response of HTTP/1.1, or a stream of HTTP/2. */
export type RawResponse = ServerResponse | ServerHttp2Stream
