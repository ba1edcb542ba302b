// `kcp member`: registered clusters.
import { Command } from 'commander'
import { memberJoinCommand } from './member-join.ts'

export function memberCommand(): Command {
  return new Command('member')
    .description('register clusters that run the workloads of tenants')
    .addCommand(memberJoinCommand())
}
