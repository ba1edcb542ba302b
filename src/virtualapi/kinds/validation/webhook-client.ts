// Validation of webhook addresses, shared by conversion webhooks of CustomResourceDefinitions and admission webhooks.
import { X509Certificate } from 'node:crypto'
import { dns1123SubdomainErrors, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

/** Validation errors of a clientConfig, except those of its caBundle. */
export function webhookClientCauses(path: string, clientConfig: Readonly<JsonObject>): StatusCause[] {
  const { url, service } = clientConfig
  if ((typeof url === 'string') === isJsonObject(service))
    return [fieldRequired(path, 'exactly one of url or service is required')]
  if (typeof url === 'string') return urlCauses(`${path}.url`, url)
  return isJsonObject(service) ? serviceCauses(`${path}.service`, service) : []
}

const form = '; desired format: https://host[/path]'

function urlCauses(path: string, text: string): StatusCause[] {
  // Go's url.Parse requires a scheme before the first colon.
  if (text.startsWith(':'))
    return [
      fieldRequired(path, `url must be a valid URL: parse ${JSON.stringify(text)}: missing protocol scheme${form}`),
    ]
  const escape = /%(?![0-9a-f]{2}).{0,2}/is.exec(text.replace(/[?#].*$/s, ''))?.[0]
  if (escape !== undefined) {
    const parse = `parse ${JSON.stringify(text)}: invalid URL escape ${JSON.stringify(escape)}`
    return [fieldRequired(path, `url must be a valid URL: ${parse}${form}`)]
  }
  const [, scheme = '', authority = '', query, fragment] =
    /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?[^?#]*(?:\?([^#]*))?(?:#(.*))?$/i.exec(text) ?? []
  const at = authority.lastIndexOf('@')
  const causes: StatusCause[] = []
  if (scheme.toLowerCase() !== 'https')
    causes.push(fieldInvalid(path, scheme.toLowerCase(), `'https' is the only allowed URL scheme${form}`))
  if (authority.slice(at + 1) === '') causes.push(fieldInvalid(path, '', `host must be specified${form}`))
  if (at >= 0) causes.push(fieldInvalid(path, authority.slice(0, at), 'user information is not permitted in the URL'))
  if (fragment) causes.push(fieldInvalid(path, fragment, 'fragments are not permitted in the URL'))
  if (query) causes.push(fieldInvalid(path, query, 'query parameters are not permitted in the URL'))
  return causes
}

function serviceCauses(path: string, { name, namespace, port = 443, path: urlPath }: JsonObject): StatusCause[] {
  const causes: StatusCause[] = []
  // Upstream hands the two over in the wrong order, so each error names the other one.
  if (!namespace) causes.push(fieldRequired(`${path}.name`))
  if (!name) causes.push(fieldRequired(`${path}.namespace`))
  if (typeof port === 'number' && (port < 1 || port > 65535))
    causes.push(fieldInvalid(`${path}.port`, port, 'port is not valid: must be between 1 and 65535, inclusive'))
  return typeof urlPath === 'string' ? [...causes, ...pathCauses(`${path}.path`, urlPath)] : causes
}

function pathCauses(path: string, urlPath: string): StatusCause[] {
  if (urlPath === '/' || urlPath === '') return []
  if (urlPath === '//') return [fieldInvalid(path, urlPath, 'segment[0] may not be empty')]
  const causes = urlPath.startsWith('/') ? [] : [fieldInvalid(path, urlPath, "must start with a '/'")]
  for (const [i, step] of urlPath.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (step === '') causes.push(fieldInvalid(path, urlPath, `segment[${i}] may not be empty`))
    else
      for (const why of dns1123SubdomainErrors(step)) causes.push(fieldInvalid(path, urlPath, `segment[${i}]: ${why}`))
  }
  return causes
}

/** Validation errors of a caBundle (base64 of PEM), which must hold certificates. An absent or empty one is valid. */
export function caBundleCauses(path: string, caBundle: JsonValue | undefined): StatusCause[] {
  if (typeof caBundle !== 'string' || caBundle === '') return []
  const pem = Buffer.from(caBundle, 'base64').toString()
  try {
    new X509Certificate(pem)
    return []
  } catch {
    return [fieldInvalid(path, caBundle, 'unable to load root certificates: unable to parse bytes as PEM block')]
  }
}
