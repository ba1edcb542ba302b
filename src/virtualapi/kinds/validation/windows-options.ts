// Validation of the Windows options of pods and containers.
import type { V1WindowsSecurityContextOptions } from '@kubernetes/client-node'
import { dns1123SubdomainErrors, fieldInvalid } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'

const maxCredentialSpecKiB = 64
const maxDomainBytes = 256
const maxUserBytes = 104
const control = /[\x00-\x1f\x7f]/
const netBios = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/u
const dnsName = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/
const badUser = /["/\\:;|=,+*?<>@[\]]/

export function windowsOptionsCauses(
  path: string,
  options: Data<V1WindowsSecurityContextOptions> | undefined,
): StatusCause[] {
  if (options === undefined) return []
  const { gmsaCredentialSpecName: name, gmsaCredentialSpec: spec, runAsUserName: user } = options
  const causes =
    name === undefined
      ? []
      : dns1123SubdomainErrors(name).map((text) => fieldInvalid(`${path}.gmsaCredentialSpecName`, name, text))
  if (spec === '')
    causes.push(fieldInvalid(`${path}.gmsaCredentialSpec`, spec, 'gmsaCredentialSpec cannot be an empty string'))
  else if (spec !== undefined && Buffer.byteLength(spec) > maxCredentialSpecKiB * 1024)
    causes.push(
      fieldInvalid(
        `${path}.gmsaCredentialSpec`,
        spec,
        `gmsaCredentialSpec size must be under ${maxCredentialSpecKiB} KiB`,
      ),
    )
  if (user !== undefined)
    causes.push(...userErrors(user).map((text) => fieldInvalid(`${path}.runAsUserName`, user, text)))
  return causes
}

/** Errors for a user name: `USER` or `DOMAIN\USER`. */
function userErrors(text: string): string[] {
  if (text === '') return ['runAsUserName cannot be an empty string']
  if (control.test(text)) return ['runAsUserName cannot contain control characters']
  const parts = text.split('\\', 3)
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash']
  const domain = parts.length === 2 ? parts[0] : undefined
  const user = parts.at(-1) ?? ''
  const errors: string[] = []
  const longDomain = domain !== undefined && Buffer.byteLength(domain) >= maxDomainBytes
  if (longDomain) errors.push(`runAsUserName's Domain length must be under ${maxDomainBytes} characters`)
  if (domain !== undefined && !netBios.test(domain) && !dnsName.test(domain))
    errors.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
  if (user === '') errors.push("runAsUserName's User cannot be empty")
  else if (Buffer.byteLength(user) > maxUserBytes)
    errors.push(`runAsUserName's User length must not be longer than ${maxUserBytes} characters`)
  if (/^[. ]+$/.test(user)) errors.push("runAsUserName's User cannot contain only periods or spaces")
  if (badUser.test(user)) errors.push(`runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]`)
  return errors
}
