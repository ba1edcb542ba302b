// Validation of webhook addresses, shared by conversion webhooks of CustomResourceDefinitions and admission webhooks.
import { X509Certificate } from 'node:crypto'
import { dns1123SubdomainErrors } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { servicePort } from './basic-rules.ts'
import type { Rule } from './vocabulary.ts'

/** A clientConfig, except its caBundle. */
export const webhookClient: Rule<Readonly<JsonObject>> = ({ url, service }, report) => {
  if ((typeof url === 'string') === isJsonObject(service))
    report.required('', 'exactly one of url or service is required')
  else if (typeof url === 'string') report.at('url', webhookUrl, url)
  else if (isJsonObject(service)) report.at('service', webhookService, service)
}

const form = '; desired format: https://host[/path]'

const webhookUrl: Rule<string> = (text, report) => {
  // Go's url.Parse requires a scheme before the first colon.
  if (text.startsWith(':')) {
    report.required('', `url must be a valid URL: parse ${JSON.stringify(text)}: missing protocol scheme${form}`)
    return
  }
  const escape = /%(?![0-9a-f]{2}).{0,2}/is.exec(text.replace(/[?#].*$/s, ''))?.[0]
  if (escape !== undefined) {
    const parse = `parse ${JSON.stringify(text)}: invalid URL escape ${JSON.stringify(escape)}`
    report.required('', `url must be a valid URL: ${parse}${form}`)
    return
  }
  const [, scheme = '', authority = '', query, fragment] =
    /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?[^?#]*(?:\?([^#]*))?(?:#(.*))?$/i.exec(text) ?? []
  const at = authority.lastIndexOf('@')
  if (scheme.toLowerCase() !== 'https')
    report.invalid('', scheme.toLowerCase(), `'https' is the only allowed URL scheme${form}`)
  if (authority.slice(at + 1) === '') report.invalid('', '', `host must be specified${form}`)
  if (at >= 0) report.invalid('', authority.slice(0, at), 'user information is not permitted in the URL')
  if (fragment) report.invalid('', fragment, 'fragments are not permitted in the URL')
  if (query) report.invalid('', query, 'query parameters are not permitted in the URL')
}

const webhookService: Rule<JsonObject> = ({ name, namespace, port, path }, report) => {
  // Upstream passes name and namespace in the wrong order, so each error names the other field.
  if (!namespace) report.required('name')
  if (!name) report.required('namespace')
  if (typeof port === 'number') report.at('port', servicePort, port)
  if (typeof path === 'string') report.at('path', urlPath, path)
}

const urlPath: Rule<string> = (path, report) => {
  if (path === '/' || path === '') return
  if (path === '//') {
    report.invalid('', path, 'segment[0] may not be empty')
    return
  }
  if (!path.startsWith('/')) report.invalid('', path, "must start with a '/'")
  for (const [i, step] of path.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (step === '') report.invalid('', path, `segment[${i}] may not be empty`)
    else for (const why of dns1123SubdomainErrors(step)) report.invalid('', path, `segment[${i}]: ${why}`)
  }
}

/** A caBundle (base64 of PEM), which must contain certificates. An absent or empty caBundle is valid. */
export const caBundle: Rule<JsonValue | undefined> = (bundle, report) => {
  if (typeof bundle !== 'string' || bundle === '') return
  try {
    new X509Certificate(Buffer.from(bundle, 'base64').toString())
  } catch {
    report.invalid('', bundle, 'unable to load root certificates: unable to parse bytes as PEM block')
  }
}
