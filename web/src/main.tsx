// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact';
import { App } from './app';
import './styles/base.css';
import './styles/parts.css';
import './styles/pages.css';
import './styles/flows.css';
import './theme';

const place = document.getElementById('app');
if (place) render(<App />, place);
