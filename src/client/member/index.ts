export * from './connect-to-member.ts'
export * from './member-kubeconfig.ts'
export * from './member-token.ts'
