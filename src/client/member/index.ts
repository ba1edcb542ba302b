export * from './connect-to-member.ts'
