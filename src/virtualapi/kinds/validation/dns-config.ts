// Validation of the DNS settings of a pod.
import type { V1HostAlias, V1PodDNSConfig } from '@kubernetes/client-node'
import { fieldInvalid, fieldRequired, maxLengthText, regexText } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { legacyIpCauses } from './ip-values.ts'
import { subdomain } from './values.ts'

const maxNameservers = 3
const maxSearches = 32
const maxSearchCharacters = 2048
const searchText = regexText(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*',
  'example.com',
)
const searchPart = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/

export function dnsCauses(
  path: string,
  policy: string | undefined,
  config: Data<V1PodDNSConfig> | undefined,
): StatusCause[] {
  if (config === undefined)
    return policy === 'None' ? [fieldRequired(path, 'must provide `dnsConfig` when `dnsPolicy` is None')] : []
  const { nameservers = [], searches = [], options = [] } = config
  if (policy === 'None' && nameservers.length === 0)
    return [fieldRequired(`${path}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None')]
  const causes: StatusCause[] = []
  if (nameservers.length > maxNameservers)
    causes.push(
      fieldInvalid(`${path}.nameservers`, nameservers, `must not have more than ${maxNameservers} nameservers`),
    )
  if (searches.length > maxSearches)
    causes.push(fieldInvalid(`${path}.searches`, searches, `must not have more than ${maxSearches} search paths`))
  if (Buffer.byteLength(searches.join(' ')) > maxSearchCharacters)
    causes.push(
      fieldInvalid(
        `${path}.searches`,
        searches,
        `must not have more than ${maxSearchCharacters} characters (including spaces) in the search list`,
      ),
    )
  return [
    ...causes,
    ...nameservers.flatMap((ip, index) => legacyIpCauses(`${path}.nameservers[${index}]`, ip)),
    ...searches.flatMap((text, index) => searchCauses(`${path}.searches[${index}]`, text)),
    ...options.flatMap(({ name }, index) =>
      name ? [] : [fieldRequired(`${path}.options[${index}]`, 'must not be empty')],
    ),
  ]
}

function searchCauses(path: string, text: string): StatusCause[] {
  if (text === '.') return []
  const domain = text.replace(/\.$/, '')
  return [
    ...(Buffer.byteLength(domain) > 253 ? [fieldInvalid(path, domain, maxLengthText(253))] : []),
    ...(domain.split('.').every((part) => searchPart.test(part)) ? [] : [fieldInvalid(path, domain, searchText)]),
  ]
}

export function hostAliasCauses(path: string, aliases: readonly Data<V1HostAlias>[] | undefined): StatusCause[] {
  return (aliases ?? []).flatMap(({ ip, hostnames }, index) => [
    ...legacyIpCauses(`${path}[${index}].ip`, ip),
    ...(hostnames ?? []).flatMap((name, i) => subdomain(`${path}[${index}].hostnames[${i}]`, name)),
  ])
}
