import { render } from 'preact';
import { App } from './app.tsx';
import { followLinks } from './state/route.ts';
import { applyTheme } from './state/theme.ts';
import './style.css';

applyTheme();
followLinks();
const root = document.getElementById('app');
if (root) render(<App />, root);
