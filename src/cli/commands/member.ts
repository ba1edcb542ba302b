// `kcp member`: registered clusters.
import { Command } from 'commander'

export function memberCommand(): Command {
  return new Command('member')
    .description('register clusters that run what tenants apply')
    
}
