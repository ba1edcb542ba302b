// The writer of answers into Node's response objects.
import type { ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'

/** A response of HTTP/1.1, or a stream of HTTP/2. */
export type RawResponse = ServerResponse | ServerHttp2Stream
