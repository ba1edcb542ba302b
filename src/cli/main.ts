// The program: flags in, exit codes out. Everything else is wired by a role.
import { Command } from 'commander'
import { makeProtoAPlainKey } from '#apimachinery/meta/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { apiserverCommand } from './commands/apiserver.ts'
import { diagnoseCommand } from './commands/diagnose.ts'
import { drainCommand } from './commands/drain.ts'
import { fenceCommand } from './commands/fence.ts'
import { gatewayCommand } from './commands/gateway.ts'
import { sealKeyCommand } from './commands/seal-key.ts'
import { kubeconfigCommand } from './commands/kubeconfig.ts'
import { memberCommand } from './commands/member.ts'
import { operatorCommand } from './commands/operator.ts'
import { placementCommand } from './commands/placement-explain.ts'
import { startCommand } from './commands/start.ts'
import { unregisterCommand } from './commands/unregister.ts'
import { messageOf } from './process/exit-error.ts'

// Tenants' objects have maps with any keys.
makeProtoAPlainKey()

const program = new Command('kcp')
  .description('logical clusters for many tenants, whose workloads run transparently on many member clusters')
  .version(programVersion)
  .showHelpAfterError('(try --help)')
  .addCommand(startCommand())
  .addCommand(kubeconfigCommand())
  .addCommand(memberCommand())
  .addCommand(drainCommand())
  .addCommand(fenceCommand())
  .addCommand(sealKeyCommand())
  .addCommand(placementCommand())
  .addCommand(operatorCommand())
  .addCommand(apiserverCommand())
  .addCommand(gatewayCommand())
  .addCommand(unregisterCommand())
  .addCommand(diagnoseCommand())

// Separately created commands inherit no settings from the program.
for (const command of commandsOf(program)) command.showHelpAfterError('(try --help)')

try {
  await program.parseAsync()
  process.exitCode = 0
} catch (error) {
  console.error(`kcp: ${messageOf(error)}`)
  if (process.env['KCP_DEBUG'] !== undefined) console.error(error)
  process.exitCode = 1
}
// A handle left open must not keep a stopped process alive.
process.exit()

function commandsOf(parent: Command): Command[] {
  return parent.commands.flatMap((command) => [command, ...commandsOf(command)])
}
