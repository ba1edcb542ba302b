// `kcp login` and its flags: those of kubelogin (`kubectl oidc-login get-token`), so that a kubeconfig changes its command
// alone.
import { join } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'
import { loadedLate, parseCount, parseListenAddress, withRequired, type ListenAddress } from './commands/flags.ts'
import { grantTypes } from './login/grant-types.ts'

/** `kcp login`: the exec plugin of people who sign in with an identity provider. */
export function loginCommand(): Command {
  const command = new Command('login').description(
    'sign in with an identity provider (OpenID Connect), and print an ExecCredential; kubectl runs this command. The flags are those of kubelogin',
  )
  withRequired(command, new Option('--oidc-issuer-url <url>', 'URL of the provider'))
  withRequired(command, new Option('--oidc-client-id <id>', 'the client that the provider knows'))
  return withCache(withConnection(withGrants(withClient(command)))).action(
    loadedLate(() => import('./commands/login.ts')),
  )
}

function withClient(command: Command): Command {
  return command
    .option('--oidc-client-secret <secret>', 'secret of the client, if it has one')
    .option('--oidc-extra-scope <scopes>', 'scopes besides openid, with commas; may be repeated', addTexts, [])
    .option('--oidc-use-access-token', 'send the access token, which must be a JWT, instead of the ID token')
    .option('--force-refresh', 'get a new token, even if the kept one is valid')
}

function withGrants(command: Command): Command {
  return command
    .addOption(
      new Option('--grant-type <type>', 'how to sign in; auto: password with --username, else authcode')
        .choices(grantTypes)
        .default('auto'),
    )
    .option(
      '--listen-address <addresses>',
      'authcode: HOST:PORT to which the browser comes back, with commas; the first that is free',
      addAddresses,
      [],
    )
    .option('--skip-open-browser', 'only print the link')
    .option('--browser-command <program>', 'program that opens the link')
    .option('--authentication-timeout-sec <seconds>', 'authcode: how long to wait for the browser', parseCount, 180)
    .option('--oidc-redirect-url <url>', 'authcode, authcode-keyboard: redirect URL (default: http://localhost:PORT)')
    .addOption(new Option('--oidc-redirect-url-hostname <host>', 'host of the default').default('localhost').hideHelp())
    .addOption(new Option('--oidc-redirect-url-authcode-keyboard <url>').hideHelp())
    .option(
      '--oidc-auth-request-extra-params <pairs>',
      'further parameters of the request, as name=value with commas; may be repeated',
      addPairs,
      {},
    )
    .addOption(
      new Option('--oidc-pkce-method <method>', 'auto: S256, unless the provider lists methods without it')
        .choices(['auto', 'no', 'S256'])
        .default('auto'),
    )
    .addOption(new Option('--oidc-use-pkce').hideHelp())
    .option('--local-server-cert <file>', 'authcode: certificate of the listener, which then speaks TLS')
    .option('--local-server-key <file>', 'authcode: its key')
    .option('--open-url-after-authentication <url>', 'authcode: where the browser goes afterwards')
    .option('--username <name>', 'password: the user')
    .option('--password <password>', 'password: the password (default: it is asked for)')
}

function withConnection(command: Command): Command {
  return command
    .option(
      '--certificate-authority <file>',
      'authority of the certificate of the provider (default: those of the system); may be repeated',
      addText,
      [],
    )
    .option('--certificate-authority-data <base64>', 'the same, as base64; may be repeated', addText, [])
    .option(
      '--insecure-skip-tls-verify',
      'do not check the certificate of the provider: whoever is between reads the tokens',
    )
    .option('--oidc-request-header <pairs>', 'headers for the provider, as name=value; may be repeated', addPairs, {})
}

function withCache(command: Command): Command {
  return command
    .option('--token-cache-dir <dir>', 'folder of the tokens', defaultCacheFolder())
    .addOption(
      new Option('--token-cache-storage <storage>', 'disk: files that only you can read; none: sign in each time')
        .choices(['disk', 'none'])
        .default('disk'),
    )
}

/** Beside that of kubelogin; kubectl's variable names another place for caches. */
function defaultCacheFolder(): string {
  const { KUBECACHEDIR: folder } = process.env
  return folder === undefined || folder === '' ? '~/.kube/cache/kcp-login' : join(folder, 'kcp-login')
}

function addText(text: string, before: readonly string[]): string[] {
  return [...before, text]
}

function addTexts(text: string, before: readonly string[]): string[] {
  return [...before, ...text.split(',').filter((one) => one !== '')]
}

function addAddresses(text: string, before: readonly ListenAddress[]): ListenAddress[] {
  return [...before, ...text.split(',').map(parseListenAddress)]
}

function addPairs(text: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = text.split(',').map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw new InvalidArgumentError('it must be name=value')
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
  return { ...before, ...(Object.fromEntries(pairs) as Record<string, string>) }
}
