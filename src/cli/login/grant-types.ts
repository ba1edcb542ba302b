// The values of --grant-type, without the code behind them: the help does not load it.

export const grantTypes = [
  'auto',
  'authcode',
  'authcode-keyboard',
  'password',
  'device-code',
  'client-credentials',
] as const
export type GrantType = (typeof grantTypes)[number]
