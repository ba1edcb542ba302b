// The flags for outbound calls that tenants' data causes (webhooks), shared by all commands that serve requests.
import { InvalidArgumentError, type Command } from 'commander'
import { isCidr, type AddressPolicyOptions } from '#network/egress/index.ts'

/** The flag values as commander passes them. */
export interface EgressFlags {
  readonly egressAllow: readonly string[]
  readonly egressDeny: readonly string[]
}

/** Adds `--egress-allow` and `--egress-deny`. */
export function withEgressFlags(command: Command): Command {
  return command
    .option(
      '--egress-allow <cidr>',
      "addresses at which tenants' webhooks may be called although they are loopback, link-local, private or this machine's own; " +
        'may be repeated',
      addCidr,
      [],
    )
    .option(
      '--egress-deny <cidr>',
      "public addresses at which tenants' webhooks may not be called, such as nodes, pods and Services of the host; wins over " +
        '--egress-allow; may be repeated',
      addCidr,
      [],
    )
}

/** Converts the flag values to options of the roles. */
export function egressOf({ egressAllow, egressDeny }: EgressFlags): { egress: AddressPolicyOptions } {
  return { egress: { allow: egressAllow, deny: egressDeny } }
}

function addCidr(text: string, before: readonly string[]): string[] {
  if (!isCidr(text)) throw new InvalidArgumentError('it must be a CIDR such as 10.0.0.0/8, or an address')
  return [...before, text]
}
