// Validation of the Windows options of pods and containers.
import type { V1WindowsSecurityContextOptions } from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { subdomain } from './basic-rules.ts'
import { fields, firstOf, must, optional, text } from './vocabulary.ts'

const maxCredentialSpecKiB = 64
const maxDomainBytes = 256
const maxUserBytes = 104
const control = /[\x00-\x1f\x7f]/
const netBios = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/u
const dnsName = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/
const badUser = /["/\\:;|=,+*?<>@[\]]/

/** Errors for a user name: `USER` or `DOMAIN\USER`. */
function userErrors(text: string): string[] {
  if (text === '') return ['runAsUserName cannot be an empty string']
  if (control.test(text)) return ['runAsUserName cannot contain control characters']
  const parts = text.split('\\', 3)
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash']
  const domain = parts.length === 2 ? parts[0] : undefined
  const user = parts.at(-1) ?? ''
  const errors: string[] = []
  const longDomain = domain !== undefined && byteLength(domain) >= maxDomainBytes
  if (longDomain) errors.push(`runAsUserName's Domain length must be under ${maxDomainBytes} characters`)
  if (domain !== undefined && !netBios.test(domain) && !dnsName.test(domain))
    errors.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
  if (user === '') errors.push("runAsUserName's User cannot be empty")
  else if (byteLength(user) > maxUserBytes)
    errors.push(`runAsUserName's User length must not be longer than ${maxUserBytes} characters`)
  if (/^[. ]+$/.test(user)) errors.push("runAsUserName's User cannot contain only periods or spaces")
  if (badUser.test(user)) errors.push(`runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]`)
  return errors
}

export const windowsOptions = fields<Data<V1WindowsSecurityContextOptions>>({
  gmsaCredentialSpecName: optional(subdomain),
  gmsaCredentialSpec: firstOf<string | undefined>(
    must((spec) => spec !== '', 'gmsaCredentialSpec cannot be an empty string'),
    must(
      (spec: string) => byteLength(spec) <= maxCredentialSpecKiB * 1024,
      `gmsaCredentialSpec size must be under ${maxCredentialSpecKiB} KiB`,
    ),
  ),
  runAsUserName: optional(text(userErrors)),
})
