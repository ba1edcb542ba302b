export { Access, accessHolderKey, type AcceptedAccess } from './access.ts'
export { AccessGate, attributesOf, type AskHost } from './access-gate.ts'
export { createAccessTokens, type AccessTarget, type AccessTokens } from './access-tokens.ts'
