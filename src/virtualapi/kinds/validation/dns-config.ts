// Validation of the DNS settings of a pod.
import type { V1HostAlias, V1PodDNSConfig, V1PodDNSConfigOption, V1PodSpec } from '@kubernetes/client-node'
import { byteLength, maxLengthText, regexText } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { subdomain } from './basic-rules.ts'
import { legacyIp } from './ip-values.ts'
import { all, each, fields, must, type Rule } from './vocabulary.ts'

const maxNameservers = 3
const maxSearches = 32
const maxSearchCharacters = 2048
const searchText = regexText(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*',
  'example.com',
)
const searchPart = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/

const searchDomain: Rule<string> = (text, report) => {
  if (text === '.') return
  const domain = text.replace(/\.$/, '')
  if (byteLength(domain) > 253) report.invalid('', domain, maxLengthText(253))
  if (!domain.split('.').every((part) => searchPart.test(part))) report.invalid('', domain, searchText)
}

const settings = all<Data<V1PodDNSConfig>>(
  fields({
    nameservers: must(
      (list: string[]) => list.length <= maxNameservers,
      `must not have more than ${maxNameservers} nameservers`,
    ),
    searches: all<string[] | undefined>(
      must((list: string[]) => list.length <= maxSearches, `must not have more than ${maxSearches} search paths`),
      must(
        (list: string[]) => byteLength(list.join(' ')) <= maxSearchCharacters,
        `must not have more than ${maxSearchCharacters} characters (including spaces) in the search list`,
      ),
    ),
  }),
  fields({
    nameservers: each(legacyIp),
    searches: each(searchDomain),
    options: each<Data<V1PodDNSConfigOption>>(({ name }, report) => {
      if (!name) report.required('', 'must not be empty')
    }),
  }),
)

/** The rules of dnsConfig, which is required if dnsPolicy is None. */
export const dnsConfig: Rule<Data<V1PodSpec>> = ({ dnsPolicy, dnsConfig: config }, report) => {
  if (dnsPolicy === 'None' && config === undefined)
    report.required('dnsConfig', 'must provide `dnsConfig` when `dnsPolicy` is None')
  else if (dnsPolicy === 'None' && !config?.nameservers?.length)
    report.required('dnsConfig.nameservers', 'must provide at least one DNS nameserver when `dnsPolicy` is None')
  else if (config !== undefined) report.at('dnsConfig', settings, config)
}

export const hostAlias = fields<Data<V1HostAlias>>({ ip: legacyIp, hostnames: each(subdomain) })
