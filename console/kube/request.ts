// Requests of the pages to the server of the console: relative URLs, the session's cookie, errors as Kubernetes Status.

/** An answer that is not a success, with the words of the server. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly reason: string
  readonly causes: readonly { readonly field?: string; readonly message?: string }[]

  constructor(status: number, body: StatusBody) {
    super(body.message ?? `HTTP ${status}`)
    this.status = status
    this.reason = body.reason ?? ''
    this.causes = body.details?.causes ?? []
  }
}

interface StatusBody {
  readonly message?: string
  readonly reason?: string
  readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message?: string }[] }
}

export interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly accept?: string
  readonly contentType?: string
  readonly body?: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal
}

let whenSignedOut = (): void => undefined

/** Calls `listener` for each answer 401: the session has ended. */
export function onSignedOut(listener: () => void): void {
  whenSignedOut = listener
}

/** The absolute URL of a path that is relative to the console's page. */
export function urlOf(path: string, query: RequestOptions['query'] = {}): URL {
  const url = new URL(path, document.baseURI)
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
  return url
}

/** Resolves with a successful response. Rejects with ApiError otherwise, and with TypeError without a connection. */
export async function request(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = 'GET', accept = 'application/json', contentType = 'application/json', body, query, signal } = options
  const headers: Record<string, string> = { accept, 'x-kcp-console': '1' }
  if (body !== undefined) headers['content-type'] = contentType
  const response = await fetch(urlOf(path, query), {
    method,
    headers,
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    ...(body !== undefined && { body }),
    ...(signal !== undefined && { signal }),
  })
  if (response.ok) return response
  const error = new ApiError(response.status, await statusOf(response))
  if (response.status === 401) whenSignedOut()
  throw error
}

async function statusOf(response: Response): Promise<StatusBody> {
  const text = await response.text().catch(() => '')
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Not JSON: the text itself is the message.
  }
  return text === '' ? {} : { message: text.slice(0, 500) }
}

/** The JSON of a successful response; the caller knows its shape. */
export async function requestJson<T>(path: string, options?: RequestOptions): Promise<T> {
  const response = await request(path, options)
  return (await response.json()) as T
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
