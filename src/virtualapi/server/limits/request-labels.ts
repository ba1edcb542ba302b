// The labels of the metrics of requests. Clients choose the method, and pods behind proxies choose the status code, so
// each label takes its values from a bounded set.

const verbs = new Set(['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'post'])

/** The verb itself if it is one of Kubernetes; `other` for any other one. */
export function verbLabel(verb: string | undefined): string {
  return verb !== undefined && verbs.has(verb) ? verb : 'other'
}

const codes = new Set([
  200, 201, 202, 204, 301, 302, 307, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 501, 502, 503,
  504, 507,
])

/** The code itself if the server uses it in its own responses; for other codes the class, such as `4xx`. */
export function codeLabel(status: number): string {
  return codes.has(status) ? String(status) : `${Math.floor(status / 100)}xx`
}
