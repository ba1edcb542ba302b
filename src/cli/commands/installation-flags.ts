// The flags that name an installation, shared by the commands that act on one.
import { Option, type Command } from 'commander'

/** The flag values as commander passes them. */
export interface InstallationFlags {
  readonly rootDir?: string
  readonly hostKubeconfig?: string
}

/** Adds `--root-dir` and `--host-kubeconfig`. */
export function withInstallation(command: Command): Command {
  return command
    .addOption(new Option('--root-dir <dir>', 'directory of `kcp start`').conflicts('hostKubeconfig'))
    .addOption(new Option('--host-kubeconfig <file>', 'kubeconfig of the host cluster'))
}
