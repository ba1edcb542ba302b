export * from './configuration.ts'
export * from './configuration-file.ts'
export * from './sign-in.ts'
