export * from './start-controllers.ts'
